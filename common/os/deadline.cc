#include "common/os/deadline.h"

#include <algorithm>

namespace clew {

Deadline::Deadline(double seconds)
    : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(seconds))) {}

double Deadline::seconds_left() const {
  return std::max(0.0,
                  std::chrono::duration<double>(end_ - Clock::now()).count());
}

Deadline Deadline::Within(double seconds) const {
  return Deadline(std::min(seconds, seconds_left()));
}

}  // namespace clew
