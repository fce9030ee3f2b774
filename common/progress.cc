#include "common/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace clew {

using std::chrono::duration;
using std::chrono::milliseconds;

TerminalProgress::TerminalProgress(std::string label, std::string unit)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      enabled_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      next_(start_ + milliseconds(2000)) {}

TerminalProgress::~TerminalProgress() {
  if (shown_) {
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
  }
}

void TerminalProgress::Update(uint64_t done, uint64_t total) {
  if (!enabled_) {
    return;
  }
  const auto now = Clock::now();
  if (now < next_) {
    return;
  }
  next_ = now + milliseconds(100);
  shown_ = true;
  const double seconds = duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / seconds;
  std::string line = fmt::format("\r\x1b[K{}", label_);
  if (total > 0) {
    line += fmt::format("  {:3.0f}%", 100.0 * static_cast<double>(done) /
                                          static_cast<double>(total));
  }
  line +=
      fmt::format("  {} {}  {} {}/s", WithMagnitude(static_cast<double>(done)),
                  unit_, WithMagnitude(rate), unit_);
  if (total > done && rate > 0) {
    line +=
        fmt::format("  ETA {:.0f} s", static_cast<double>(total - done) / rate);
  }
  fmt::print(stderr, "{}", line);
  std::fflush(stderr);
}

std::string WithMagnitude(double value) {
  constexpr const char* kSuffixes[] = {"", " k", " M", " G", " T"};
  size_t index = 0;
  while (value >= 1000 && index + 1 < std::size(kSuffixes)) {
    value /= 1000;
    ++index;
  }
  return index == 0 ? fmt::format("{:.0f}", value)
                    : fmt::format("{:.1f}{}", value, kSuffixes[index]);
}

}  // namespace clew
