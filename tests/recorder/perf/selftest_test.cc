// Goal: the self-test runs what this host can, and says for each other step
// what is missing; a step whose need is missing is never passed.
// Method: the real kernel, with a sysfs that has no intel_pt and with one that
// claims it: then the kernel must refuse the event.
#include "recorder/perf/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "recorder/perf/sysfs.h"

namespace clew::recorder::perf {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SelfTestTest : public testing::Test {
 protected:
  SelfTestTest() {
    std::string pattern = fs::temp_directory_path() / "clew-selftest-XXXXXX";
    sys_ = mkdtemp(pattern.data());
    Put("devices/system/cpu/online",
        FirstLine("/sys/devices/system/cpu/online").value_or("0"));
  }
  ~SelfTestTest() override { fs::remove_all(sys_); }

  void Put(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(sys_ + "/" + name).parent_path());
    std::ofstream(sys_ + "/" + name) << text << "\n";
  }
  std::vector<SelfTestStep> Run() const {
    auto steps = RunSelfTest(RealPerfKernel(), sys_, "/proc");
    EXPECT_EQ(steps.size(), 8u);
    return steps;
  }

  std::string sys_;
};

TEST_F(SelfTestTest, WithoutPmuSidebandRunsAndPtDoesNot) {
  const auto steps = Run();
  EXPECT_EQ(steps[0].name, "pmu");
  EXPECT_EQ(steps[0].outcome, StepOutcome::kFailed);
  EXPECT_THAT(steps[0].detail, HasSubstr("does not offer Intel PT"));
  for (size_t i = 5; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].outcome, StepOutcome::kNotRun) << steps[i].name;
    EXPECT_THAT(steps[i].detail, HasSubstr("needs p"));
  }
  if (steps[1].outcome != StepOutcome::kPassed) {
    GTEST_SKIP() << steps[1].detail;
  }
  EXPECT_EQ(steps[2].outcome, StepOutcome::kPassed) << steps[2].detail;
  EXPECT_EQ(steps[3].outcome, StepOutcome::kPassed) << steps[3].detail;
}

// No kernel has an event source of this number.
TEST_F(SelfTestTest, APmuThatTheKernelDoesNotKnowFailsWhenOpened) {
  const std::string pmu = "bus/event_source/devices/intel_pt/";
  Put(pmu + "type", "2000000000");
  Put(pmu + "format/tsc", "config:10");
  Put(pmu + "caps/topa_output", "1");
  const auto steps = Run();
  EXPECT_EQ(steps[0].outcome, StepOutcome::kPassed) << steps[0].detail;
  if (steps[1].outcome != StepOutcome::kPassed) {
    GTEST_SKIP() << steps[1].detail;
  }
  EXPECT_EQ(steps[5].outcome, StepOutcome::kFailed);
  EXPECT_THAT(steps[5].detail,
              HasSubstr("cannot open an event of type 2000000000"));
  EXPECT_EQ(steps[6].outcome, StepOutcome::kNotRun);
  EXPECT_EQ(steps[7].outcome, StepOutcome::kNotRun);
}

}  // namespace
}  // namespace clew::recorder::perf
