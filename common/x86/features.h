#ifndef CLEW_COMMON_X86_FEATURES_H_
#define CLEW_COMMON_X86_FEATURES_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace clew::x86 {

// Sets of instructions that one x86-64 CPU has and another has not, by the
// names of the Intel SDM (vol. 2, "CPUID"). Those that nothing asks for are not
// among them: the machine carries them out on any CPU.
//
// X(enumerator, name, where CPUID tells of it: leaf, sub-leaf, register, bit;
//   whether the machine carries all of it out, whether it does so with the
//   host's instructions, so that the host must have them)
#define CLEW_CPU_FEATURES(X)                                           \
  X(kSse3, "SSE3", 1, 0, kEcx, 0, true, false)                         \
  X(kPclmulqdq, "PCLMULQDQ", 1, 0, kEcx, 1, true, true)                \
  X(kSsse3, "SSSE3", 1, 0, kEcx, 9, true, false)                       \
  X(kFma, "FMA", 1, 0, kEcx, 12, true, true)                           \
  X(kSse41, "SSE4.1", 1, 0, kEcx, 19, true, false)                     \
  X(kSse42, "SSE4.2", 1, 0, kEcx, 20, true, false)                     \
  X(kMovbe, "MOVBE", 1, 0, kEcx, 22, true, false)                      \
  X(kAes, "AES", 1, 0, kEcx, 25, true, true)                           \
  X(kXsave, "XSAVE", 1, 0, kEcx, 26, true, false)                      \
  X(kAvx, "AVX", 1, 0, kEcx, 28, true, false)                          \
  X(kF16c, "F16C", 1, 0, kEcx, 29, true, true)                         \
  X(kBmi1, "BMI1", 7, 0, kEbx, 3, true, false)                         \
  X(kAvx2, "AVX2", 7, 0, kEbx, 5, true, false)                         \
  X(kBmi2, "BMI2", 7, 0, kEbx, 8, true, false)                         \
  X(kRtm, "RTM", 7, 0, kEbx, 11, false, false)                         \
  X(kAvx512f, "AVX512F", 7, 0, kEbx, 16, true, false)                  \
  X(kAvx512dq, "AVX512DQ", 7, 0, kEbx, 17, true, false)                \
  X(kAdx, "ADX", 7, 0, kEbx, 19, true, false)                          \
  X(kAvx512Ifma, "AVX512_IFMA", 7, 0, kEbx, 21, true, false)           \
  X(kClflushopt, "CLFLUSHOPT", 7, 0, kEbx, 23, true, false)            \
  X(kClwb, "CLWB", 7, 0, kEbx, 24, true, false)                        \
  X(kAvx512cd, "AVX512CD", 7, 0, kEbx, 28, true, false)                \
  X(kSha, "SHA", 7, 0, kEbx, 29, true, true)                           \
  X(kAvx512bw, "AVX512BW", 7, 0, kEbx, 30, true, false)                \
  X(kAvx512vl, "AVX512VL", 7, 0, kEbx, 31, true, false)                \
  X(kAvx512Vbmi, "AVX512_VBMI", 7, 0, kEcx, 1, true, false)            \
  X(kAvx512Vbmi2, "AVX512_VBMI2", 7, 0, kEcx, 6, true, false)          \
  X(kGfni, "GFNI", 7, 0, kEcx, 8, true, false)                         \
  X(kVaes, "VAES", 7, 0, kEcx, 9, true, true)                          \
  X(kVpclmulqdq, "VPCLMULQDQ", 7, 0, kEcx, 10, true, true)             \
  X(kAvx512Vnni, "AVX512_VNNI", 7, 0, kEcx, 11, true, false)           \
  X(kAvx512Bitalg, "AVX512_BITALG", 7, 0, kEcx, 12, true, false)       \
  X(kAvx512Vpopcntdq, "AVX512_VPOPCNTDQ", 7, 0, kEcx, 14, true, false) \
  X(kSerialize, "SERIALIZE", 7, 0, kEdx, 14, true, false)              \
  X(kXsaveopt, "XSAVEOPT", 0xd, 1, kEax, 0, false, false)              \
  X(kXsavec, "XSAVEC", 0xd, 1, kEax, 1, true, false)                   \
  X(kLzcnt, "LZCNT", 0x80000001, 0, kEcx, 5, true, false)

enum class Feature : uint8_t {
#define CLEW_ENUMERATOR(enumerator, ...) enumerator,
  CLEW_CPU_FEATURES(CLEW_ENUMERATOR)
#undef CLEW_ENUMERATOR
};

class FeatureSet {
 public:
  constexpr FeatureSet() = default;
  constexpr FeatureSet(std::initializer_list<Feature> features) {
    for (const Feature feature : features) {
      Add(feature);
    }
  }

  constexpr void Add(Feature feature) { bits_ |= Bit(feature); }
  constexpr bool Has(Feature feature) const {
    return (bits_ & Bit(feature)) != 0;
  }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool Contains(FeatureSet others) const {
    return others.Without(*this).empty();
  }
  constexpr FeatureSet Without(FeatureSet others) const {
    FeatureSet rest = *this;
    rest.bits_ &= ~others.bits_;
    return rest;
  }
  // Those of `others`.
  constexpr FeatureSet In(FeatureSet others) const {
    return Without(Without(others));
  }
  constexpr FeatureSet With(FeatureSet others) const {
    FeatureSet all = *this;
    all.bits_ |= others.bits_;
    return all;
  }
  bool operator==(const FeatureSet&) const = default;

 private:
  static constexpr uint64_t Bit(Feature feature) {
    return uint64_t{1} << static_cast<unsigned>(feature);
  }
  uint64_t bits_ = 0;
};

// What every recorded CPU has: x86-64-v2, as far as it has rows.
inline constexpr FeatureSet kX86_64V2 = {Feature::kSse3, Feature::kSsse3,
                                         Feature::kSse41, Feature::kSse42};

// What the machine carries out in whole: what a program that is recorded may be
// told that its CPU has.
inline constexpr FeatureSet kCarriedOut = [] {
  FeatureSet features;
#define CLEW_ADD(enumerator, name, leaf, sub_leaf, reg, bit, carried_out, ...) \
  if (carried_out) {                                                           \
    features.Add(Feature::enumerator);                                         \
  }
  CLEW_CPU_FEATURES(CLEW_ADD)
#undef CLEW_ADD
  return features;
}();

// What it carries out on a host that has it, and on no other.
inline constexpr FeatureSet kByHost = [] {
  FeatureSet features;
#define CLEW_ADD(enumerator, name, leaf, sub_leaf, reg, bit, carried_out, \
                 by_host)                                                 \
  if (by_host) {                                                          \
    features.Add(Feature::enumerator);                                    \
  }
  CLEW_CPU_FEATURES(CLEW_ADD)
#undef CLEW_ADD
  return features;
}();

// What a leaf of CPUID tells.
struct CpuidResult {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

// Asks this host's CPU; zeros for a leaf that it does not have.
CpuidResult AskCpuid(uint32_t leaf, uint32_t sub_leaf);

// Returns the bits of a leaf that tell of these features.
CpuidResult CpuidBitsOf(FeatureSet features, uint32_t leaf, uint32_t sub_leaf);

// Returns what this host's CPU has, and its kernel lets programs use.
FeatureSet HostFeatures();

// Returns MXCSR_MASK of this host's CPU. Source: Intel SDM vol. 1, "Checking
// for the DAZ Flag in the MXCSR Register".
uint32_t HostMxcsrMask();

// Returns the names, as in "AVX, AES"; in the order of the rows.
std::string NamesOf(FeatureSet features);
// Returns those of such a list. A name of no row is left out.
FeatureSet FeaturesNamed(std::string_view names);

}  // namespace clew::x86

#endif  // CLEW_COMMON_X86_FEATURES_H_
