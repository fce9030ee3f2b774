#ifndef CLEW_DAEMON_DAEMON_H_
#define CLEW_DAEMON_DAEMON_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/digest.h"
#include "common/result.h"
#include "daemon/config/config.h"
#include "daemon/config/paths.h"
#include "daemon/control/control.h"
#include "daemon/control/late_answers.h"
#include "daemon/loop/clock.h"
#include "daemon/loop/counters.h"
#include "daemon/loop/incidents.h"
#include "daemon/loop/log.h"
#include "daemon/loop/loop.h"
#include "daemon/pipeline/admission.h"
#include "daemon/pipeline/bundle_jobs.h"
#include "daemon/pipeline/incoming_folder.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/reporter.h"
#include "daemon/pipeline/software_units.h"
#include "daemon/source/source_keeper.h"
#include "daemon/spool/spool.h"
#include "daemon/status.h"
#include "daemon/triggers.h"
#include "daemon/unit_poller.h"
#include "daemon/units/units.h"

namespace clew::daemon {

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

// The daemon behind its socket: puts its parts together, applies the
// configuration to them, and answers requests. docs/design/daemon.md. Runs in
// the loop's thread.
class Daemon final : public ControlHandler {
 public:
  // Fails with kInvalidArgument if the configuration is wrong or another clewd
  // runs here. A source that cannot be opened is not an error: it is tried
  // again.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> Start(
      DaemonParts parts, const Config& config);
  ~Daemon() override;

  // Reads the configuration again. Changes nothing if it fails.
  [[nodiscard]] Status Reload();
  // Ends the loop once nothing is being saved, at the latest after kStopMs.
  void Stop();
  DaemonStatus status() const;

  Answer OnRequest(ConnectionId connection, const Peer& peer,
                   const Request& request) override;
  void OnClosed(ConnectionId connection) override;

 private:
  static constexpr uint64_t kStopMs = 15'000;
  static constexpr uint64_t kPeriodMs = 10'000;

  Daemon(DaemonParts parts, const Config& config, Spool spool);
  Status Open();
  void Apply(const Config& config);
  void RunPeriodicWork();
  void SaveEnded();
  void ShowState();

  Answer Handle(const Peer& peer, ConnectionId connection,
                const CoreRequest& request);
  Result<std::string> Snapshot(const SnapshotRequest& request);

  DaemonParts parts_;
  Config config_;
  Spool spool_;
  Admission admission_;
  Counters counters_;
  LastError last_error_;
  Incidents incidents_;
  Random random_;
  PrepareJob prepare_;
  UploadJob upload_;
  Pipeline pipeline_;
  Reporter reporter_;
  IncomingFolder incoming_;
  SoftwareUnits software_units_;
  SourceKeeper source_;
  Loop::TimerId period_timer_ = 0;
  bool stopping_ = false;
  uint64_t started_ns_ = 0;
  LateAnswers late_answers_;
  std::unique_ptr<ControlServer> control_;
  Triggers triggers_;  // its threads use what is above
  UnitPoller units_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_DAEMON_H_
