#include "common/x86/features.h"

#include <cpuid.h>

#include <array>
#include <cstddef>
#include <cstring>

#include "common/x86/xcr0.h"

namespace clew::x86 {
namespace {

// The registers of CLEW_CPU_FEATURES.
constexpr auto kEax = &CpuidResult::eax;
constexpr auto kEbx = &CpuidResult::ebx;
constexpr auto kEcx = &CpuidResult::ecx;
constexpr auto kEdx = &CpuidResult::edx;

struct Row {
  Feature feature;
  std::string_view name;
  uint32_t leaf;
  uint32_t sub_leaf;
  uint32_t CpuidResult::* reg;
  unsigned bit;
};

constexpr Row kRows[] = {
#define CLEW_ROW(enumerator, name, leaf, sub_leaf, reg, bit, ...) \
  {Feature::enumerator, name, leaf, sub_leaf, reg, bit},
    CLEW_CPU_FEATURES(CLEW_ROW)
#undef CLEW_ROW
};

constexpr uint32_t Bit(unsigned n) { return uint32_t{1} << n; }

// Whether the kernel saves what AVX needs: the upper halves of YMM registers.
bool SavesAvx() {
  constexpr uint64_t kSseAndAvx = 0x6;  // of XCR0
  return (HostXcr0() & kSseAndAvx) == kSseAndAvx;
}

// What AVX-512 needs: opmask registers and all of ZMM registers. Source: Intel
// SDM vol. 1, "Detection of AVX-512 Foundation Instructions".
bool SavesAvx512() {
  constexpr uint64_t kOpmaskAndZmm = 0xe0;
  return SavesAvx() && (HostXcr0() & kOpmaskAndZmm) == kOpmaskAndZmm;
}

FeatureSet AskAll() {
  FeatureSet features;
  FeatureSet of_avx512;
  for (const Row& row : kRows) {
    if ((AskCpuid(row.leaf, row.sub_leaf).*row.reg & Bit(row.bit)) != 0) {
      features.Add(row.feature);
    }
    if (row.name.starts_with("AVX512")) {
      of_avx512.Add(row.feature);
    }
  }
  constexpr FeatureSet kOfAvx = {Feature::kAvx,  Feature::kAvx2,
                                 Feature::kFma,  Feature::kF16c,
                                 Feature::kVaes, Feature::kVpclmulqdq};
  return features.Without(SavesAvx() ? FeatureSet() : kOfAvx)
      .Without(SavesAvx512() ? FeatureSet() : of_avx512);
}

}  // namespace

CpuidResult AskCpuid(uint32_t leaf, uint32_t sub_leaf) {
  CpuidResult result;
  (void)__get_cpuid_count(leaf, sub_leaf, &result.eax, &result.ebx, &result.ecx,
                          &result.edx);
  return result;
}

CpuidResult CpuidBitsOf(FeatureSet features, uint32_t leaf, uint32_t sub_leaf) {
  CpuidResult bits;
  for (const Row& row : kRows) {
    if (row.leaf == leaf && row.sub_leaf == sub_leaf &&
        features.Has(row.feature)) {
      bits.*row.reg |= Bit(row.bit);
    }
  }
  return bits;
}

// Under a hypervisor each question takes microseconds.
FeatureSet HostFeatures() {
  static const FeatureSet features = AskAll();
  return features;
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

std::string NamesOf(FeatureSet features) {
  std::string names;
  for (const Row& row : kRows) {
    if (features.Has(row.feature)) {
      names += names.empty() ? "" : ", ";
      names += row.name;
    }
  }
  return names;
}

FeatureSet FeaturesNamed(std::string_view names) {
  FeatureSet features;
  while (!names.empty()) {
    const size_t end = names.find(", ");
    for (const Row& row : kRows) {
      if (row.name == names.substr(0, end)) {
        features.Add(row.feature);
      }
    }
    names = end == std::string_view::npos ? "" : names.substr(end + 2);
  }
  return features;
}

}  // namespace clew::x86
