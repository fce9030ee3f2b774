#include "common/x86/xcr0.h"

#include "common/x86/features.h"

namespace clew::x86 {

uint64_t HostXcr0() {
  constexpr uint32_t kOsxsave = uint32_t{1} << 27;  // of leaf 1, ECX
  uint32_t low = 0;
  uint32_t high = 0;
  if ((AskCpuid(1, 0).ecx & kOsxsave) != 0) {
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  }
  return uint64_t{high} << 32 | low;
}

}  // namespace clew::x86
