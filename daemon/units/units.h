#ifndef CLEW_DAEMON_UNITS_UNITS_H_
#define CLEW_DAEMON_UNITS_UNITS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/bundle_facts.h"
#include "common/inputs.h"
#include "common/result.h"
#include "daemon/config/config.h"

namespace clew::daemon {

// What a service manager knows of a unit.
struct UnitState {
  bool active = false;
  bool failed = false;
  uint64_t restarts = 0;  // by the manager itself, since it was started
  int32_t process = 0;    // its main one; 0: none
  std::string cgroup;     // "/system.slice/a.service"
  // How the last main process ended. Both are 0 if it ended well, still runs,
  // or its end is not known.
  int32_t ended_by_signal = 0;
  int32_t exit_status = 0;
};

class UnitManager {
 public:
  virtual ~UnitManager() = default;
  // Connects, in place of an earlier connection. Fails with kSystem if the
  // manager does not answer.
  [[nodiscard]] virtual Status Connect() = 0;
  // Returns the state of one unit. Fails with kSystem if the manager does not
  // answer; then Connect is to be called again. Any other error concerns this
  // unit alone. REQUIRES: Connect succeeded.
  [[nodiscard]] virtual Result<UnitState> Get(const std::string& unit) = 0;
};

inline constexpr uint64_t kSystemdAnswerMs = 200;

// Returns a manager that asks systemd by D-Bus. It is not connected yet;
// connecting and each question take at most `answer_ms`.
std::unique_ptr<UnitManager> SystemdByDbus(
    uint64_t answer_ms = kSystemdAnswerMs);

struct UnitEvent {
  std::string unit;
  TriggerKind kind = TriggerKind::kUnitFailed;  // or kHang
  int32_t process = 0;
  // kNone if it failed and was started again, so that its end is not known.
  Failure failure = {};
};

struct UnitReport {
  WatchedUnit watched;
  std::optional<UnitState> state;  // none: not known
  uint64_t quiet_s = 0;  // since the last sign of life, if hangs are watched
  std::string error;     // why the state is not known; empty: it is
};

// Looks at units now and then and tells what happened between. A failure is a
// unit that became failed, or that its manager has restarted. A hang is told
// once, until there is a sign of life.
//
// A manager that does not answer is connected to again, after a pause that
// doubles; until then no state is known. What is read then is compared with
// what was known before, so a failure meanwhile is told, late. A unit that the
// manager cannot tell about does not keep the others from being asked. Not
// thread-safe.
class UnitWatch {
 public:
  static constexpr uint64_t kPauseMsMin = 1'000;
  static constexpr uint64_t kPauseMsMax = 60'000;

  // `manager` may be nullptr: then heartbeat files alone are looked at. It must
  // outlive the watch. `cgroup_root` is where cgroups are mounted.
  UnitWatch(UnitManager* manager, std::string cgroup_root)
      : manager_(manager), cgroup_root_(std::move(cgroup_root)) {}

  // Sets which units to watch. Keeps what is known of those that were watched
  // before.
  void SetUnits(const std::vector<WatchedUnit>& units);
  std::vector<UnitEvent> Poll(uint64_t now_ms);
  std::vector<UnitReport> Report(uint64_t now_ms) const;
  // Returns why the manager cannot be asked; empty if it answers, or was not
  // asked.
  const std::string& error() const { return error_; }

 private:
  struct Watched {
    WatchedUnit unit;
    std::optional<UnitState> state;  // the last that was known
    std::string error;               // of the last question
    int32_t last_process = 0;
    uint64_t sign = 0;                   // whatever changes while it lives
    std::optional<uint64_t> sign_at_ms;  // when it last changed
    bool hung = false;
  };
  bool IsConnected(uint64_t now_ms);
  void Lost(const Error& error, uint64_t now_ms);
  std::optional<UnitState> AskAbout(Watched& watched, uint64_t now_ms);
  bool Failed(Watched& watched, const UnitState& now) const;
  bool Hangs(Watched& watched, uint64_t now_ms) const;
  std::optional<uint64_t> SignOf(const Watched& watched) const;

  UnitManager* manager_;
  std::string cgroup_root_;
  std::map<std::string, Watched> units_;
  bool connected_ = false;
  std::string error_;
  uint64_t pause_ms_ = kPauseMsMin;
  uint64_t connect_at_ms_ = 0;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_UNITS_UNITS_H_
