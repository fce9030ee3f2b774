#ifndef CLEW_RECORDER_QEMU_LATENESS_H_
#define CLEW_RECORDER_QEMU_LATENESS_H_

#include <cstdint>

#include "common/digest.h"

namespace clew::recorder {

// How late a thread runs after a time limit or timer that it waited for. A
// kernel lets it wait for the timer's slack, 50 us, and for a CPU: mostly some
// hundred us altogether, sometimes milliseconds. Who comes first where two
// limits are close to one another is so left to the seed.
//
// The same calls give the same times on every host. Not thread-safe.
class Lateness {
 public:
  static constexpr uint64_t kLeastNs = 50'000;
  static constexpr uint64_t kMostNs = kLeastNs << 6;

  explicit Lateness(uint64_t seed) : random_(MixBits(seed ^ kStream)) {}

  // From kLeastNs to kMostNs, each doubling of it as often as every other.
  uint64_t DrawNs() {
    const uint64_t least = kLeastNs << random_.Below(6);
    return least + random_.Below(least + 1);
  }

 private:
  static constexpr uint64_t kStream = 0x6c617465;  // other than the scheduler's

  Random random_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_LATENESS_H_
