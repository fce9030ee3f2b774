#ifndef CLEW_DAEMON_DAEMON_H_
#define CLEW_DAEMON_DAEMON_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/digest.h"
#include "common/result.h"
#include "daemon/admission.h"
#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/control.h"
#include "daemon/counters.h"
#include "daemon/late_answers.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/paths.h"
#include "daemon/pipeline.h"
#include "daemon/process_facts.h"
#include "daemon/reporter.h"
#include "daemon/saver.h"
#include "daemon/saves_at_work.h"
#include "daemon/source.h"
#include "daemon/spool.h"
#include "daemon/status.h"
#include "daemon/units.h"
#include "daemon/works.h"

namespace clew::daemon {

using OpenSource =
    std::function<Result<std::unique_ptr<PtSource>>(const Config&)>;

// What a daemon is made of; tests put their own in. References outlive it.
struct DaemonParts {
  Loop& loop;
  Clock& clock;
  Log& log;
  Paths paths;
  std::string proc = "/proc";
  std::string clewd;  // our own program
  OpenSource open_source;
  UnitManager* units = nullptr;  // nullptr: there is no systemd
};

// The daemon behind its socket: triggers, admission, the source, saving, and
// the pipeline. docs/design/daemon.md. Runs in the loop's thread.
class Daemon final : public ControlHandler {
 public:
  // kInvalidArgument: the configuration, or another clewd runs here. A source
  // that cannot be opened is no error: it is tried again.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> Start(
      DaemonParts parts, const Config& config);
  ~Daemon() override;

  // Reads the configuration again. An error changes nothing.
  [[nodiscard]] Status Reload();
  // Ends the loop once nothing is being saved, at the latest after kStopMs.
  void Stop();
  DaemonStatus status() const;

  Answer OnRequest(ConnectionId connection, const Peer& peer,
                   const Request& request) override;
  void OnClosed(ConnectionId connection) override;

 private:
  static constexpr uint64_t kStopMs = 15'000;
  static constexpr uint64_t kTendMs = 10'000;

  // A failure or a request that somebody noticed.
  struct Noticed {
    TriggerKind kind = TriggerKind::kUnknown;
    int32_t process = 0;
    std::string unit;
    Failure failure;
    bool core = false;  // a core dump comes with it
  };
  struct Begun {
    std::string name;
    Saver::Id id = 0;
    Fd core;
    uint64_t core_bytes_max = 0;
    Fd witnessed;  // as PtSource::Witness
  };

  Daemon(DaemonParts parts, const Config& config, Spool spool);
  Status Open();
  Status WatchIncoming();
  void Apply(const Config& config);
  void OpenTheSource();
  Status OpenForOneSave();
  void CloseAfterOneSave();
  void Tend();
  void TendIncoming();
  void LookAtUnits();
  void TellUnitErrors();
  void ShowState();

  Answer Handle(const Peer& peer, ConnectionId connection,
                const CoreRequest& request);
  void EndCoreCopy(ConnectionId connection, bool whole);
  Result<std::string> Snapshot(const SnapshotRequest& request);
  Result<std::string> EndSoftwareUnit(const std::string& partial, bool end);
  Result<Begun> Begin(const Noticed& noticed);
  Status MayBegin(const Noticed& noticed, const FailureKey& key);
  bool IsBusyFor(uint32_t user) const;
  // What the core dump may have at most, and what room is kept for.
  struct Room {
    uint64_t core_bytes_max = 0;
    uint64_t bytes = 0;
  };
  uint64_t CoreBytesOf(const Noticed& noticed, const ProcessFacts& facts) const;
  Result<Room> MakeRoomFor(uint64_t core_bytes);
  void Saved(Saver::Id id, const std::string& name, const SaveEnd& end);
  void Note(std::string_view event, const Error& error);
  void Reported(const std::string& why);

  DaemonParts parts_;
  Config config_;
  Spool spool_;
  Admission admission_;
  Counters counters_;
  LastError last_error_;
  SaveTimes times_;
  Random random_;
  PrepareWork prepare_;
  UploadWork upload_;
  Pipeline pipeline_;
  Reporter reporter_;
  UnitWatch units_;
  std::unique_ptr<PtSource> source_;
  std::string source_error_;
  bool for_one_save_ = false;   // source_ goes with the save
  bool reopen_source_ = false;  // once nothing is being saved
  Fd inotify_;
  std::map<ConnectionId, Saver::Id> core_copies_;
  SavesAtWork at_work_;
  Loop::TimerId tend_timer_ = 0;
  Loop::TimerId unit_timer_ = 0;
  Loop::TimerId source_timer_ = 0;
  bool stopping_ = false;
  uint64_t started_ns_ = 0;
  LateAnswers late_answers_;
  std::unique_ptr<ControlServer> control_;
  Saver saver_;  // last: its thread uses what is above
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_DAEMON_H_
