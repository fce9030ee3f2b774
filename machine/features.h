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
// X(enumerator, name, whether the machine carries all of it out)
#define CLEW_CPU_FEATURES(X)        \
  X(kSse3, "SSE3", true)            \
  X(kSsse3, "SSSE3", true)          \
  X(kSse41, "SSE4.1", true)         \
  X(kSse42, "SSE4.2", true)         \
  X(kAes, "AES", false)             \
  X(kPclmulqdq, "PCLMULQDQ", false) \
  X(kMovbe, "MOVBE", false)         \
  X(kXsave, "XSAVE", false)         \
  X(kAvx, "AVX", false)             \
  X(kF16c, "F16C", false)           \
  X(kFma, "FMA", false)             \
  X(kAvx2, "AVX2", false)           \
  X(kBmi1, "BMI1", false)           \
  X(kBmi2, "BMI2", false)           \
  X(kSha, "SHA", false)             \
  X(kAvx512, "AVX-512", false)

enum class Feature : uint8_t {
#define CLEW_ENUMERATOR(enumerator, name, carried_out) enumerator,
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
#define CLEW_ADD(enumerator, name, carried_out) \
  if (carried_out) {                            \
    features.Add(Feature::enumerator);          \
  }
  CLEW_CPU_FEATURES(CLEW_ADD)
#undef CLEW_ADD
  return features;
}();

// Returns the names, as in "AVX, AES"; in the order of the rows.
std::string NamesOf(FeatureSet features);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_FEATURES_H_
