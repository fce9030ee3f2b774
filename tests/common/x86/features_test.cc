// Goal: what a CPU has is told by name and found again; the rows say where
// CPUID tells of it. Method: each feature alone and all together; the host's by
// CPUID against what the compiler's runtime found out.
#include "common/x86/features.h"

#include <gtest/gtest.h>

namespace clew::x86 {
namespace {

constexpr Feature kAll[] = {
#define CLEW_NAME(enumerator, ...) Feature::enumerator,
    CLEW_CPU_FEATURES(CLEW_NAME)
#undef CLEW_NAME
};

TEST(FeaturesTest, NamesAreFoundAgain) {
  FeatureSet all;
  for (const Feature feature : kAll) {
    all.Add(feature);
    EXPECT_EQ(FeaturesNamed(NamesOf({feature})), FeatureSet({feature}));
  }
  EXPECT_EQ(FeaturesNamed(NamesOf(all)), all);
}

TEST(FeaturesTest, WhatIsNoNameIsLeftOut) {
  EXPECT_EQ(FeaturesNamed(""), FeatureSet());
  EXPECT_EQ(FeaturesNamed("AVX3, AVX2, , avx, AVX"),
            FeatureSet({Feature::kAvx, Feature::kAvx2}));
  EXPECT_EQ(FeaturesNamed("AVX2,AVX"), FeatureSet());
}

TEST(FeaturesTest, SetsAreCombined) {
  constexpr FeatureSet kTwo = {Feature::kAvx, Feature::kAes};
  constexpr FeatureSet kOther = {Feature::kAes, Feature::kSha};
  EXPECT_EQ(kTwo.In(kOther), FeatureSet({Feature::kAes}));
  EXPECT_EQ(kTwo.Without(kOther), FeatureSet({Feature::kAvx}));
  EXPECT_EQ(kTwo.With(kOther),
            FeatureSet({Feature::kAvx, Feature::kAes, Feature::kSha}));
}

// Each has a bit of its own, and no bit is another's.
TEST(FeaturesTest, BitsOfCpuidAreApart) {
  FeatureSet all;
  int bits = 0;
  for (const Feature feature : kAll) {
    all.Add(feature);
  }
  for (const auto& [leaf, sub_leaf] :
       {std::pair{1u, 0u}, {7u, 0u}, {0xdu, 1u}, {0x80000001u, 0u}}) {
    const CpuidResult told = CpuidBitsOf(all, leaf, sub_leaf);
    for (const uint32_t word : {told.eax, told.ebx, told.ecx, told.edx}) {
      bits += __builtin_popcount(word);
    }
  }
  EXPECT_EQ(bits, static_cast<int>(std::size(kAll)));
}

TEST(FeaturesTest, TheHostHasWhatTheCompilersRuntimeFinds) {
  const FeatureSet host = HostFeatures();
  const auto expect = [&](Feature feature, int has) {
    EXPECT_EQ(host.Has(feature), has != 0) << NamesOf({feature});
  };
  expect(Feature::kSse42, __builtin_cpu_supports("sse4.2"));
  expect(Feature::kAes, __builtin_cpu_supports("aes"));
  expect(Feature::kPclmulqdq, __builtin_cpu_supports("pclmul"));
  expect(Feature::kMovbe, __builtin_cpu_supports("movbe"));
  expect(Feature::kAvx, __builtin_cpu_supports("avx"));
  expect(Feature::kF16c, __builtin_cpu_supports("f16c"));
  expect(Feature::kFma, __builtin_cpu_supports("fma"));
  expect(Feature::kAvx2, __builtin_cpu_supports("avx2"));
  expect(Feature::kBmi1, __builtin_cpu_supports("bmi"));
  expect(Feature::kBmi2, __builtin_cpu_supports("bmi2"));
  expect(Feature::kLzcnt, __builtin_cpu_supports("lzcnt"));
  expect(Feature::kAdx, __builtin_cpu_supports("adx"));
  expect(Feature::kAvx512f, __builtin_cpu_supports("avx512f"));
}

TEST(FeaturesTest, TheMaskOfMxcsrHasWhatEveryCpuHas) {
  EXPECT_EQ(HostMxcsrMask() & 0xffbf, 0xffbfu);
}

}  // namespace
}  // namespace clew::x86
