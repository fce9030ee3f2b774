#include "daemon/log.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace clew::daemon {
namespace {

bool IsPlain(std::string_view value) {
  return !value.empty() && std::ranges::all_of(value, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') ||
           std::string_view("._:/~@+,-").find(c) != std::string_view::npos;
  });
}

bool IsPowerOfTen(uint64_t number) {
  while (number >= 10 && number % 10 == 0) {
    number /= 10;
  }
  return number == 1;
}

void Append(std::string& line, std::string_view key, std::string_view value) {
  line += line.empty() ? "" : " ";
  line += key;
  line += '=';
  line += IsPlain(value) ? std::string(value) : fmt::format("{:?}", value);
}

}  // namespace

void Log::Write(Level level, std::string_view event,
                std::initializer_list<Field> fields) {
  std::string line;
  Append(line, "event", event);
  for (const auto& [key, value] : fields) {
    Append(line, key, value);
  }
  if (journald_) {
    line.insert(0, fmt::format("<{}>", static_cast<int>(level)));
  }
  line += '\n';
  // Nobody is left to tell.
  (void)!write(fd_, line.data(), line.size());
}

void Log::Once(Level level, std::string_view event, std::string_view what,
               std::initializer_list<Field> fields) {
  const std::string key = fmt::format("{} {}", event, what);
  if (times_.size() >= kConditionsMax && !times_.contains(key)) {
    times_.clear();
  }
  const uint64_t times = ++times_[key];
  if (!IsPowerOfTen(times)) {
    return;
  }
  Write(level, event, fields);
  if (times > 1) {
    Write(level, event, {{"times", fmt::format("{}", times)}});
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
