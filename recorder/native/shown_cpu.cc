#include "recorder/native/shown_cpu.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace clew::recorder {
namespace {

constexpr uint32_t kExtended = 0x80000000;
// The last leaves that are told: behind them come features that need state or
// instructions of their own (XSAVE, SGX, PT, AMX, AVX10, ...).
constexpr uint32_t kLeafMax = 7;
constexpr uint32_t kExtendedLeafMax = 0x80000008;

constexpr uint32_t Bit(int n) { return uint32_t{1} << n; }

// Leaf 1, ECX: SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT.
constexpr uint32_t kFeatures1c =
    Bit(0) | Bit(9) | Bit(13) | Bit(19) | Bit(20) | Bit(23);
// EDX: FPU, TSC, CX8, CMOV, CLFLUSH, MMX, FXSR, SSE, SSE2 and what only the
// kernel uses.
constexpr uint32_t kFeatures1d = 0x078bfbff;
constexpr uint32_t kClflushAndCount = 0x00ffff00;  // of leaf 1, EBX
// Leaf 80000001: LAHF in 64-bit mode; SYSCALL, NX, 1 GiB pages, RDTSCP, LM.
constexpr uint32_t kFeaturesExtendedC = Bit(0);
constexpr uint32_t kFeaturesExtendedD =
    Bit(11) | Bit(20) | Bit(26) | Bit(27) | Bit(29);

}  // namespace

CpuidResult ShownCpuid(uint32_t leaf, uint32_t subleaf) {
  const bool is_known =
      leaf <= kLeafMax || (leaf >= kExtended && leaf <= kExtendedLeafMax);
  CpuidResult told;
  if (!is_known) {
    return told;
  }
  __cpuid_count(leaf, subleaf, told.eax, told.ebx, told.ecx, told.edx);
  switch (leaf) {
    case 0:
      told.eax = std::min(told.eax, kLeafMax);
      break;
    case 1:
      told.ebx &= kClflushAndCount;
      told.ecx &= kFeatures1c;
      told.edx &= kFeatures1d;
      break;
    case 5:  // MONITOR
    case 6:  // thermal and power
    case 7:
      return {};
    case kExtended:
      told.eax = std::min(told.eax, kExtendedLeafMax);
      break;
    case kExtended + 1:
      told.ecx &= kFeaturesExtendedC;
      told.edx &= kFeaturesExtendedD;
      break;
    default:
      break;
  }
  return told;
}

uint32_t HostMxcsrMask() {
  constexpr size_t kAt = 28;
  constexpr uint32_t kDefault = 0xffbf;  // where FXSAVE says 0
  alignas(16) std::array<std::byte, 512> area = {};
  asm volatile("fxsave64 %0" : "+m"(area));
  uint32_t mask = 0;
  std::memcpy(&mask, area.data() + kAt, sizeof(mask));
  return mask == 0 ? kDefault : mask;
}

}  // namespace clew::recorder
