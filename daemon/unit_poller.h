#ifndef CLEW_DAEMON_UNIT_POLLER_H_
#define CLEW_DAEMON_UNIT_POLLER_H_

#include <functional>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/loop/clock.h"
#include "daemon/loop/incidents.h"
#include "daemon/loop/log.h"
#include "daemon/loop/loop.h"
#include "daemon/triggers.h"
#include "daemon/units/units.h"

namespace clew::daemon {

// Asks about the watched units every Config::unit_poll_s, and begins a save for
// each failure of one.
class UnitPoller {
 public:
  struct Parts {
    Loop& loop;
    Clock& clock;
    Log& log;
    Incidents& incidents;
    Triggers& triggers;
  };
  // The parts and `config` outlive this. `manager` and `cgroup_root` as of
  // UnitWatch.
  UnitPoller(const Parts& parts, const Config& config, UnitManager* manager,
             const std::string& cgroup_root)
      : parts_(parts), config_(config), units_(manager, cgroup_root) {}
  UnitPoller(const UnitPoller&) = delete;
  UnitPoller& operator=(const UnitPoller&) = delete;
  ~UnitPoller() { parts_.loop.Cancel(timer_); }

  void SetUnits(const std::vector<WatchedUnit>& units) {
    units_.SetUnits(units);
  }
  // Now, and from then on.
  void Poll();
  std::vector<UnitReport> Report() const {
    return units_.Report(parts_.clock.MonotonicMs());
  }
  const std::string& error() const { return units_.error(); }

 private:
  void LogErrors();

  Parts parts_;
  const Config& config_;
  UnitWatch units_;
  Loop::TimerId timer_ = 0;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_UNIT_POLLER_H_
