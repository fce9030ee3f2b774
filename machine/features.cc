#include "machine/features.h"

namespace clew::machine {

// What the compiler's runtime has found out by CPUID and XGETBV.
FeatureSet HostFeatures() {
  FeatureSet features;
  const auto add = [&](Feature feature, int has) {
    if (has != 0) {
      features.Add(feature);
    }
  };
  add(Feature::kSse3, __builtin_cpu_supports("sse3"));
  add(Feature::kSsse3, __builtin_cpu_supports("ssse3"));
  add(Feature::kSse41, __builtin_cpu_supports("sse4.1"));
  add(Feature::kSse42, __builtin_cpu_supports("sse4.2"));
  add(Feature::kAes, __builtin_cpu_supports("aes"));
  add(Feature::kPclmulqdq, __builtin_cpu_supports("pclmul"));
  add(Feature::kMovbe, __builtin_cpu_supports("movbe"));
  add(Feature::kXsave, __builtin_cpu_supports("xsave"));
  add(Feature::kAvx, __builtin_cpu_supports("avx"));
  add(Feature::kF16c, __builtin_cpu_supports("f16c"));
  add(Feature::kFma, __builtin_cpu_supports("fma"));
  add(Feature::kAvx2, __builtin_cpu_supports("avx2"));
  add(Feature::kBmi1, __builtin_cpu_supports("bmi"));
  add(Feature::kBmi2, __builtin_cpu_supports("bmi2"));
  add(Feature::kLzcnt, __builtin_cpu_supports("lzcnt"));
  add(Feature::kAdx, __builtin_cpu_supports("adx"));
  add(Feature::kSha, __builtin_cpu_supports("sha"));
  add(Feature::kAvx512, __builtin_cpu_supports("avx512f"));
  return features;
}

std::string NamesOf(FeatureSet features) {
  std::string names;
#define CLEW_NAME(enumerator, name, carried_out, by_host) \
  if (features.Has(Feature::enumerator)) {                \
    names += names.empty() ? "" : ", ";                   \
    names += name;                                        \
  }
  CLEW_CPU_FEATURES(CLEW_NAME)
#undef CLEW_NAME
  return names;
}

}  // namespace clew::machine
