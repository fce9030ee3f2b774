// Goal: the self-test passes only where every command on the way from a failure
// to its replay did what it should; the first that did not is named with what
// it said, and nothing that needs it is started.
// Method: exhaustive: each of the commands goes wrong in each way, by a runner
// that starts nothing. (The real way: tests/e2e/native_test.cc.)
#include "cli/host/software_selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace clew::cli {
namespace {

using recorder::perf::SelfTestStep;
using recorder::perf::StepOutcome;
using testing::HasSubstr;

struct Fault {
  const char* verb;
  Result<ProgramOutput> output;
  const char* told;
};

// Answers as clew does where all is well, but for one command.
class FakeClew {
 public:
  explicit FakeClew(std::optional<Fault> fault) : fault_(std::move(fault)) {}

  std::vector<SelfTestStep> Test() {
    return TestSoftware(
        [this](const auto& command) { return Run(command); },
        {.clew = "/bin/clew", .race = "/lib/race", .folder = "/tmp/x"},
        [this](const SelfTestStep& step) { told_.push_back(step.name); });
  }
  const std::vector<std::string>& verbs() const { return verbs_; }
  const std::vector<std::string>& told() const { return told_; }

 private:
  Result<ProgramOutput> Run(const std::vector<std::string>& command) {
    EXPECT_EQ(command[0], "/bin/clew");
    verbs_.push_back(command[1]);
    if (fault_ && command[1] == fault_->verb) {
      return fault_->output;
    }
    if (command[1] == "record") {
      EXPECT_EQ(command.back(), "/lib/race");
      return ProgramOutput{1, R"({"seed":3,"instructions":118200})"};
    }
    if (command[1] == "decode") {
      return ProgramOutput{0,
                           R"({"summary":{"instructions":118200,"gaps":0}})"};
    }
    if (command[1] == "solve") {
      return ProgramOutput{
          0, R"({"verdict":"witness","grade":"memory-exact","seconds":0.25})"};
    }
    return ProgramOutput{0, "{}"};
  }

  std::optional<Fault> fault_;
  std::vector<std::string> verbs_;
  std::vector<std::string> told_;
};

const std::vector<std::string> kVerbs = {"record", "decode", "solve", "replay"};

TEST(SoftwareSelfTest, EveryStepIsToldAndSaysWhatWasSeen) {
  FakeClew clew(std::nullopt);
  const auto steps = clew.Test();
  EXPECT_EQ(clew.verbs(), kVerbs);
  ASSERT_EQ(steps.size(), 4u);
  for (const SelfTestStep& step : steps) {
    EXPECT_EQ(step.outcome, StepOutcome::kPassed) << step.name;
  }
  EXPECT_THAT(steps[0].detail, HasSubstr("run 3"));
  EXPECT_THAT(steps[0].detail, HasSubstr("118.2 k instructions"));
  EXPECT_THAT(steps[1].detail, HasSubstr("0 gaps"));
  EXPECT_THAT(steps[2].detail, HasSubstr("witness, memory-exact in 0.2 s"));
  EXPECT_THAT(clew.told(),
              testing::ElementsAre("software record", "software decode",
                                   "software solve", "software replay"));
}

TEST(SoftwareSelfTest, TheFirstThatGoesWrongIsNamedAndTheRestIsNotRun) {
  const std::string said = "one\nclew: no \x1b[1mluck\n";
  for (size_t at = 0; at < kVerbs.size(); ++at) {
    const char* verb = kVerbs[at].c_str();
    const int right = at == 0 ? 1 : 0;
    std::vector<Fault> faults = {
        {verb, SystemError(2, "cannot start it"), "cannot start it"},
        {verb, ProgramOutput{3, "{}", said}, "exit status 3: clew: no \\x1b"},
        {verb, ProgramOutput{1 - right, "{}", said}, "clew: no"},
        {verb, ProgramOutput{right, "no JSON", ""}, "exit status"}};
    if (kVerbs[at] == "decode") {
      faults.push_back(
          {verb, ProgramOutput{0, R"({"summary":{"gaps":2}})"}, "2 gaps"});
      faults.push_back({verb, ProgramOutput{0, "{}"}, "1 gaps"});
    }
    if (kVerbs[at] == "solve") {
      faults.push_back(
          {verb, ProgramOutput{0, R"({"verdict":"unknown"})"}, "unknown"});
    }
    for (const Fault& fault : faults) {
      SCOPED_TRACE(fmt::format("{}: {}", verb, fault.told));
      FakeClew clew(fault);
      const auto steps = clew.Test();
      EXPECT_EQ(clew.verbs().size(), at + 1);
      ASSERT_EQ(steps.size(), 4u);
      EXPECT_EQ(clew.told().size(), 4u);
      for (size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(steps[i].outcome, i < at    ? StepOutcome::kPassed
                                    : i == at ? StepOutcome::kFailed
                                              : StepOutcome::kNotRun);
      }
      EXPECT_THAT(steps[at].detail, HasSubstr(fault.told));
      if (at + 1 < steps.size()) {
        EXPECT_EQ(steps.back().detail, "needs software " + kVerbs[at]);
      }
    }
  }
}

}  // namespace
}  // namespace clew::cli
