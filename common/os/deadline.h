#ifndef CLEW_COMMON_OS_DEADLINE_H_
#define CLEW_COMMON_OS_DEADLINE_H_

#include <chrono>

namespace clew {

// A point in monotonic time at which work has to end.
class Deadline {
 public:
  explicit Deadline(double seconds);
  bool passed() const { return Clock::now() >= end_; }
  double seconds_left() const;
  std::chrono::steady_clock::time_point time() const { return end_; }
  // The earlier of this one and `seconds` from now.
  Deadline Within(double seconds) const;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

}  // namespace clew

#endif  // CLEW_COMMON_OS_DEADLINE_H_
