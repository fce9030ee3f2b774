#ifndef CLEW_DAEMON_LOOP_INCIDENTS_H_
#define CLEW_DAEMON_LOOP_INCIDENTS_H_

#include <string>
#include <string_view>

#include "common/result.h"
#include "daemon/loop/clock.h"
#include "daemon/loop/counters.h"
#include "daemon/loop/log.h"

namespace clew::daemon {

// What goes wrong: a line in the log, and the last of it for the status.
class Incidents {
 public:
  // All outlive this.
  Incidents(Log& log, Clock& clock, LastError& last)
      : log_(log), clock_(clock), last_(last) {}

  void Add(std::string_view event, const Error& error) {
    SetLast(error.message);
    log_.Once(Priority::kError, event, error.message, {{"why", error.message}});
  }
  // Sets the last error alone, for what has a line of its own in the log.
  void SetLast(const std::string& message) {
    last_ = {clock_.WallNs(), message};
  }

 private:
  Log& log_;
  Clock& clock_;
  LastError& last_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_LOOP_INCIDENTS_H_
