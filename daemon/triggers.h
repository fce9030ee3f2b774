#ifndef CLEW_DAEMON_TRIGGERS_H_
#define CLEW_DAEMON_TRIGGERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "common/bundle_facts.h"
#include "common/inputs.h"
#include "common/os/fd.h"
#include "common/result.h"
#include "daemon/config/config.h"
#include "daemon/control/control.h"
#include "daemon/loop/clock.h"
#include "daemon/loop/counters.h"
#include "daemon/loop/incidents.h"
#include "daemon/loop/log.h"
#include "daemon/loop/loop.h"
#include "daemon/pipeline/admission.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/saves_at_work.h"
#include "daemon/source/saver.h"
#include "daemon/source/source_keeper.h"
#include "daemon/spool/process_facts.h"
#include "daemon/spool/spool.h"
#include "daemon/status.h"

namespace clew::daemon {

// A failure that was seen, or a request for a bundle.
struct TriggerEvent {
  TriggerKind kind = TriggerKind::kUnknown;
  int32_t process = 0;  // 0: not known
  std::string unit;
  Failure failure;
  bool with_core_dump = false;
};

struct StartedSave {
  std::string name;  // of the bundle
  Saver::Id id = 0;
  Fd core_dump;  // its file, empty, where one is expected
  uint64_t core_bytes_max = 0;
  Fd noted;  // as PtSource::NoteProcess
};

// Takes each trigger from the question whether it may be saved, and whether
// there is room, to the begin and the end of the save.
class Triggers {
 public:
  struct Parts {
    Loop& loop;
    Clock& clock;
    Spool& spool;
    Admission& admission;
    Pipeline& pipeline;
    SourceKeeper& source;
    Log& log;
    Counters& counters;
    Incidents& incidents;
    std::string proc;  // where procfs is mounted
  };
  // The parts and `config` outlive this. `ended` is called when a save has
  // ended.
  Triggers(Parts parts, const Config& config, std::function<void()> ended)
      : parts_(std::move(parts)),
        config_(config),
        ended_(std::move(ended)),
        saver_(parts_.loop, parts_.clock) {}

  // Begins to save a bundle for `event`. Fails, and counts why, with kLimit
  // (rates, duplicates, saves at work, room) and kUnsupported (no source that
  // would do), and as the source does.
  [[nodiscard]] Result<StartedSave> Begin(const TriggerEvent& event);
  // Notes that the peer of `connection` writes the core dump of save `id`,
  // until EndCoreCopy or the end of the save.
  void AddCoreCopy(ControlHandler::ConnectionId connection, Saver::Id id) {
    core_copies_[connection] = id;
  }
  void EndCoreCopy(ControlHandler::ConnectionId connection, bool whole);
  // From now on Begin fails.
  void Stop() { stopped_ = true; }

  bool is_saving() const { return saver_.busy(); }
  const SaveTimes& times() const { return times_; }

 private:
  // How large the core dump may become, and for how much there is room.
  struct Room {
    uint64_t core_bytes_max = 0;
    uint64_t bytes = 0;
  };
  Result<StartedSave> TryBegin(const TriggerEvent& event);
  Status MayBegin(const TriggerEvent& event, const FailureKey& key);
  Status NeedsSource(const TriggerEvent& event);
  bool IsBusyFor(uint32_t user) const;
  uint64_t CoreBytesOf(const TriggerEvent& event,
                       const ProcessFacts& facts) const;
  Result<Room> MakeRoomFor(uint64_t core_bytes);
  Result<StartedSave> Start(const TriggerEvent& event, const FailureKey& key,
                            SaveJob job, const Room& room);
  void Ended(Saver::Id id, const std::string& name, const SaveEnd& end);

  Parts parts_;
  const Config& config_;
  const std::function<void()> ended_;
  SavesAtWork at_work_;
  std::map<ControlHandler::ConnectionId, Saver::Id> core_copies_;
  SaveTimes times_;
  bool stopped_ = false;
  Saver saver_;  // last: its threads use what is above
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_TRIGGERS_H_
