#ifndef CLEW_MACHINE_FEATURES_H_
#define CLEW_MACHINE_FEATURES_H_

#include <cstdint>
#include <initializer_list>
#include <string>

namespace clew::machine {

// Sets of instructions that one x86-64 CPU has and another has not, by the
// names of the Intel SDM (vol. 2, "CPUID"). Those that no
// handler asks for are not among them: the machine carries them out on any CPU.
//
// X(enumerator, name, whether the machine carries all of it out, whether it
//   does so with the host's instructions, so that the host must have them)
#define CLEW_CPU_FEATURES(X)              \
  X(kSse3, "SSE3", true, false)           \
  X(kSsse3, "SSSE3", true, false)         \
  X(kSse41, "SSE4.1", true, false)        \
  X(kSse42, "SSE4.2", true, false)        \
  X(kAes, "AES", false, true)             \
  X(kPclmulqdq, "PCLMULQDQ", false, true) \
  X(kMovbe, "MOVBE", false, false)        \
  X(kXsave, "XSAVE", false, false)        \
  X(kAvx, "AVX", false, false)            \
  X(kF16c, "F16C", false, true)           \
  X(kFma, "FMA", false, true)             \
  X(kAvx2, "AVX2", false, false)          \
  X(kBmi1, "BMI1", false, false)          \
  X(kBmi2, "BMI2", false, false)          \
  X(kLzcnt, "LZCNT", false, false)        \
  X(kAdx, "ADX", false, false)            \
  X(kSha, "SHA", false, true)             \
  X(kAvx512, "AVX-512", false, false)

enum class Feature : uint8_t {
#define CLEW_ENUMERATOR(enumerator, name, carried_out, by_host) enumerator,
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
  bool operator==(const FeatureSet&) const = default;

 private:
  static constexpr uint32_t Bit(Feature feature) {
    return uint32_t{1} << static_cast<unsigned>(feature);
  }
  uint32_t bits_ = 0;
};

// What the machine carries out in whole: what a program that is recorded for it
// may be told that its CPU has.
inline constexpr FeatureSet kCarriedOut = [] {
  FeatureSet features;
#define CLEW_ADD(enumerator, name, carried_out, by_host) \
  if (carried_out) {                                     \
    features.Add(Feature::enumerator);                   \
  }
  CLEW_CPU_FEATURES(CLEW_ADD)
#undef CLEW_ADD
  return features;
}();

// What it carries out on a host that has it, and on no other.
inline constexpr FeatureSet kByHost = [] {
  FeatureSet features;
#define CLEW_ADD(enumerator, name, carried_out, by_host) \
  if (by_host) {                                         \
    features.Add(Feature::enumerator);                   \
  }
  CLEW_CPU_FEATURES(CLEW_ADD)
#undef CLEW_ADD
  return features;
}();

// Returns what this host's CPU has, and its kernel lets programs use.
FeatureSet HostFeatures();

// Returns the names, as in "AVX, AES"; in the order of the rows.
std::string NamesOf(FeatureSet features);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_FEATURES_H_
