// Goal: at most per_failure bundles of one program and signal, and at most
// `all` of everything, within any period; one failure of one process once; what
// is refused is told with the next bundle; memory is bounded.
// Method: a clock of the test's own; a property over random failures, whose
// generator's start is printed.
#include "daemon/pipeline/admission.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>

#include "common/digest.h"

namespace clew::daemon {
namespace {

const FailureKey kCrash{"server", 11};
const FailureKey kAbort{"server", 6};

TEST(AdmissionTest, RatesHoldForEachFailureAndForAll) {
  Admission admission(
      {.per_failure = 2, .all = 3, .period_ms = 1000, .merge_ms = 0});
  EXPECT_EQ(admission.Ask(kCrash, 1, 0), Admitted::kYes);
  admission.Saved(kCrash, 1, 0);
  admission.Saved(kCrash, 2, 100);
  EXPECT_EQ(admission.Ask(kCrash, 3, 200), Admitted::kRateOfFailure);
  EXPECT_EQ(admission.Ask(kAbort, 3, 200), Admitted::kYes);
  admission.Saved(kAbort, 3, 200);
  EXPECT_EQ(admission.Ask({"other", 11}, 4, 300), Admitted::kRateOfAll);
  // The period of the first is over.
  EXPECT_EQ(admission.Ask(kCrash, 5, 999), Admitted::kRateOfFailure);
  EXPECT_EQ(admission.Ask(kCrash, 5, 1000), Admitted::kYes);
}

TEST(AdmissionTest, OneProcessFailsOnceWithinMergeTime) {
  Admission admission(
      {.per_failure = 9, .all = 9, .period_ms = 1000, .merge_ms = 50});
  admission.Saved(kCrash, 7, 100);
  EXPECT_EQ(admission.Ask({"server.service", 0}, 7, 149), Admitted::kDuplicate);
  EXPECT_EQ(admission.Ask({"server.service", 0}, 7, 150), Admitted::kYes);
  EXPECT_EQ(admission.Ask(kCrash, 0, 101), Admitted::kYes) << "0 is no process";
}

TEST(AdmissionTest, TheNextBundleTellsHowManyWereNotSaved) {
  Admission admission({});
  EXPECT_EQ(admission.Saved(kCrash, 1, 0), 0u);
  admission.NotSaved(kCrash, 2, 1);
  admission.NotSaved(kCrash, 3, 2);
  admission.NotSaved(kAbort, 4, 3);
  EXPECT_EQ(admission.Saved(kCrash, 5, 4), 2u);
  EXPECT_EQ(admission.Saved(kCrash, 6, 5), 0u);
}

TEST(AdmissionTest, WhatIsLongestNotSeenIsForgottenFirst) {
  Admission admission(
      {.per_failure = 1, .all = 1'000'000, .period_ms = 1000'000'000});
  for (size_t i = 0; i <= Admission::kKeysMax; ++i) {
    admission.Saved({std::to_string(i), 6}, static_cast<int32_t>(i + 1), i);
  }
  const uint64_t now_ms = Admission::kKeysMax + 1;
  EXPECT_EQ(admission.Ask({"0", 6}, 0, now_ms), Admitted::kYes) << "forgotten";
  EXPECT_EQ(admission.Ask({"1", 6}, 0, now_ms), Admitted::kRateOfFailure);
}

TEST(AdmissionTest, NoPeriodHasMoreThanTheLimits) {
  constexpr uint64_t kSeed = 20240701;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  const AdmissionLimits limits{
      .per_failure = 3, .all = 7, .period_ms = 100, .merge_ms = 0};
  Admission admission(limits);
  std::map<std::string, std::deque<uint64_t>> saved;
  std::deque<uint64_t> all;
  uint64_t now_ms = 0;
  for (int i = 0; i < 5000; ++i) {
    now_ms += random.Below(12);
    const FailureKey key{std::to_string(random.Below(4)), 6};
    if (admission.Ask(key, 0, now_ms) != Admitted::kYes) {
      continue;
    }
    admission.Saved(key, 0, now_ms);
    saved[key.program].push_back(now_ms);
    all.push_back(now_ms);
  }
  const auto check = [&](const std::deque<uint64_t>& times, uint64_t most) {
    ASSERT_GT(times.size(), most);
    for (size_t i = most; i < times.size(); ++i) {
      EXPECT_GE(times[i] - times[i - most], limits.period_ms);
    }
  };
  check(all, limits.all);
  for (const auto& [program, times] : saved) {
    check(times, limits.per_failure);
  }
}

// A stranger who gives programs names of all kinds, and that of a service.
TEST(AdmissionTest, AUserLeavesHalfToOthersAndTheirNamesAlone) {
  Admission admission({.per_failure = 2, .all = 6, .period_ms = 1000});
  const auto save = [&](const FailureKey& key) {
    const Admitted admitted = admission.Ask(key, 0, 0);
    if (admitted == Admitted::kYes) {
      (void)admission.Saved(key, 0, 0);
    }
    return admitted;
  };
  EXPECT_EQ(save({"nginx", 11, 1000}), Admitted::kYes);
  EXPECT_EQ(save({"nginx", 11, 1000}), Admitted::kYes);
  EXPECT_EQ(save({"nginx", 11, 1000}), Admitted::kRateOfFailure);
  EXPECT_EQ(save({"a", 11, 1000}), Admitted::kYes);
  EXPECT_EQ(save({"b", 11, 1000}), Admitted::kRateOfUser);
  EXPECT_EQ(save({"nginx", 11, 33}), Admitted::kYes);
  EXPECT_EQ(save({"nginx", 11, 0}), Admitted::kYes);
  EXPECT_EQ(save({"c", 11, 0}), Admitted::kYes) << "root may have all";
  EXPECT_EQ(save({"d", 11, 0}), Admitted::kRateOfAll);
  EXPECT_EQ(admission.Ask({"b", 11, 1000}, 0, 1000), Admitted::kYes);
}

}  // namespace
}  // namespace clew::daemon
