#include "recorder/native/shown_cpu.h"

#include <algorithm>

#include "common/x86/xcr0.h"

namespace clew::recorder {
namespace {

constexpr uint32_t kExtended = 0x80000000;
// The last leaves that are told: behind them come features that need state or
// instructions of their own (SGX, PT, AMX, AVX10, ...).
constexpr uint32_t kLeafMax = 0xd;
constexpr uint32_t kExtendedLeafMax = 0x80000008;

constexpr uint32_t Bit(int n) { return uint32_t{1} << n; }

// Leaf 1, ECX: CMPXCHG16B, POPCNT.
constexpr uint32_t kFeatures1c = Bit(13) | Bit(23);
constexpr uint32_t kOsxsave = Bit(27);
// EDX: FPU, TSC, CX8, CMOV, CLFLUSH, MMX, FXSR, SSE, SSE2 and what only the
// kernel uses.
constexpr uint32_t kFeatures1d = 0x078bfbff;
constexpr uint32_t kClflushAndCount = 0x00ffff00;  // of leaf 1, EBX
// Leaf 80000001: LAHF in 64-bit mode; SYSCALL, NX, 1 GiB pages, RDTSCP, LM.
constexpr uint32_t kFeaturesExtendedC = Bit(0);
constexpr uint32_t kFeaturesExtendedD =
    Bit(11) | Bit(20) | Bit(26) | Bit(27) | Bit(29);

constexpr uint32_t kXsaveLeaf = 0xd;

// What is told of the XSAVE feature set: the components of ShownXcr0, in the
// standard format. The size of the area is that of all that the host saves: a
// child of the program, which nobody steps, saves all of it.
CpuidResult ShownXsaveLeaf(uint32_t subleaf) {
  constexpr uint32_t kOtherForms = 1;  // XSAVEC and its kin
  const bool is_of_component = subleaf < 64 && subleaf > kOtherForms;
  if (ShownXcr0() == 0 || subleaf >= 64 ||
      (is_of_component && (ShownXcr0() >> subleaf & 1) == 0)) {
    return {};
  }
  CpuidResult told = x86::AskCpuid(kXsaveLeaf, subleaf);
  if (subleaf == kOtherForms) {
    told.eax = x86::CpuidBitsOf(ShownFeatures(), kXsaveLeaf, subleaf).eax;
    told.ecx = told.edx = 0;
  }
  if (subleaf == 0) {
    told.eax = static_cast<uint32_t>(ShownXcr0());
    told.edx = 0;
  }
  return told;
}

}  // namespace

x86::FeatureSet ShownFeatures() {
  return x86::kCarriedOut.In(x86::HostFeatures());
}

uint64_t ShownXcr0() {
  constexpr uint64_t kX87SseAvx = 0x7;
  constexpr uint64_t kOpmaskAndZmm = 0xe0;
  constexpr x86::FeatureSet kBoth = {x86::Feature::kXsave, x86::Feature::kAvx};
  const x86::FeatureSet shown = ShownFeatures();
  if (!shown.Contains(kBoth)) {
    return 0;
  }
  return kX87SseAvx | (shown.Has(x86::Feature::kAvx512f) ? kOpmaskAndZmm : 0);
}

CpuidResult ShownCpuid(uint32_t leaf, uint32_t subleaf) {
  const bool is_known =
      leaf <= kLeafMax || (leaf >= kExtended && leaf <= kExtendedLeafMax);
  if (!is_known) {
    return {};
  }
  CpuidResult told = x86::AskCpuid(leaf, subleaf);
  const CpuidResult features = x86::CpuidBitsOf(ShownFeatures(), leaf, subleaf);
  switch (leaf) {
    case 0:
      told.eax = std::min(told.eax, kLeafMax);
      break;
    case 1:
      told.ebx &= kClflushAndCount;
      told.ecx = (told.ecx & kFeatures1c) | features.ecx |
                 (ShownXcr0() != 0 ? kOsxsave : 0);
      told.edx &= kFeatures1d;
      break;
    case 5:  // MONITOR
    case 6:  // thermal and power
    case 8:
    case 9:
    case 0xa:  // performance monitoring
    case 0xb:  // topology, and which core is asked
    case 0xc:
      return {};
    case 7:
      return {.ebx = features.ebx, .ecx = features.ecx, .edx = features.edx};
    case kXsaveLeaf:
      return ShownXsaveLeaf(subleaf);
    case kExtended:
      told.eax = std::min(told.eax, kExtendedLeafMax);
      break;
    case kExtended + 1:
      told.ecx = (told.ecx & kFeaturesExtendedC) | features.ecx;
      told.edx &= kFeaturesExtendedD;
      break;
    default:
      break;
  }
  return told;
}

const ToldCpu& ShownCpu() {
  static const ToldCpu kShown = {.cpuid = x86::CpuidTable::Ask(ShownCpuid),
                                 .xcr0 = ShownXcr0()};
  return kShown;
}

ToldCpu HostCpu() {
  return {.cpuid = x86::CpuidTable::Ask(x86::AskCpuid),
          .xcr0 = x86::HostXcr0()};
}

}  // namespace clew::recorder
