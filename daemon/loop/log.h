#ifndef CLEW_DAEMON_LOOP_LOG_H_
#define CLEW_DAEMON_LOOP_LOG_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "common/text/event_line.h"

namespace clew::daemon {

// Events on standard error, each a line (common/text/event_line), under
// journald with its priority. Not thread-safe.
class Log {
 public:
  using Field = EventField;
  // `fd` is borrowed.
  Log(int fd, bool journald) : fd_(fd), journald_(journald) {}

  void Write(Priority priority, std::string_view event,
             std::initializer_list<Field> fields);
  // For conditions that may last: written the first time and then when the
  // count of (event, what) reaches a power of ten, with times=count.
  void Once(Priority priority, std::string_view event, std::string_view what,
            std::initializer_list<Field> fields);
  // The condition is over: the next time counts from the start.
  void Over(std::string_view event, std::string_view what);

 private:
  static constexpr size_t kConditionsMax = 256;
  int fd_;
  bool journald_;
  std::map<std::string, uint64_t, std::less<>> times_;
};

// Returns whether standard error goes to journald (systemd.exec(5),
// $JOURNAL_STREAM).
bool ErrorsGoToJournald();

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_LOOP_LOG_H_
