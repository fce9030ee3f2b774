#ifndef CLEW_DAEMON_LOG_H_
#define CLEW_DAEMON_LOG_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace clew::daemon {

enum class Level : uint8_t {
  kError = 3,
  kWarning = 4,
  kInfo = 6
};  // syslog(3)

// One line an event on standard error:
//
//   event=saved bundle=a~1~2.clew bytes=4096 reason="signal 6 (Aborted)"
//
// under journald with "<N>", its priority, in front (sd-daemon(3)). Values with
// other bytes than [A-Za-z0-9._:/~@+,-] are quoted as C strings are. Not
// thread-safe.
class Log {
 public:
  using Field = std::pair<std::string_view, std::string>;
  // `fd` is borrowed.
  Log(int fd, bool journald) : fd_(fd), journald_(journald) {}

  void Write(Level level, std::string_view event,
             std::initializer_list<Field> fields);
  // For conditions that may last: written the first time and then when the
  // count of (event, what) reaches a power of ten, with times=count.
  void Once(Level level, std::string_view event, std::string_view what,
            std::initializer_list<Field> fields);
  // The condition is over: the next time counts from the start.
  void Over(std::string_view event, std::string_view what);

 private:
  static constexpr size_t kConditionsMax = 256;
  int fd_;
  bool journald_;
  std::map<std::string, uint64_t, std::less<>> times_;
};

// Whether standard error is journald's (systemd.exec(5), $JOURNAL_STREAM).
bool ErrorsGoToJournald();

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_LOG_H_
