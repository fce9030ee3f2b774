#include "daemon/loop/log.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace clew::daemon {
namespace {

bool IsPowerOfTen(uint64_t number) {
  while (number >= 10 && number % 10 == 0) {
    number /= 10;
  }
  return number == 1;
}

}  // namespace

void Log::Write(Priority priority, std::string_view event,
                std::initializer_list<Field> fields) {
  const std::string line =
      EventLine(priority, journald_, event, {fields.begin(), fields.size()});
  // Nobody is left to tell.
  (void)!write(fd_, line.data(), line.size());
}

void Log::Once(Priority priority, std::string_view event, std::string_view what,
               std::initializer_list<Field> fields) {
  const std::string key = fmt::format("{} {}", event, what);
  if (times_.size() >= kConditionsMax && !times_.contains(key)) {
    times_.clear();
  }
  const uint64_t times = ++times_[key];
  if (!IsPowerOfTen(times)) {
    return;
  }
  Write(priority, event, fields);
  if (times > 1) {
    Write(priority, event, {{"times", fmt::format("{}", times)}});
  }
}

void Log::Over(std::string_view event, std::string_view what) {
  times_.erase(fmt::format("{} {}", event, what));
}

bool ErrorsGoToJournald() {
  const char* stream = getenv("JOURNAL_STREAM");
  struct stat info = {};
  return stream != nullptr && fstat(STDERR_FILENO, &info) == 0 &&
         fmt::format("{}:{}", info.st_dev, info.st_ino) == stream;
}

}  // namespace clew::daemon
