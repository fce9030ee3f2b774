// Goal: a program with AddressSanitizer, whose shadow has terabytes, is
// recorded, solved and replayed as any other: it ends as natively, but does not
// look for leaks; its report is a failure; a process that runs is attached to.
// Method: a program whose use after free depends on the schedule, by turns and
// free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "common/result.h"
#include "tests/e2e/answering_program.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kBytesMax = 64 << 20;

uint64_t BytesOf(const std::string& file) {
  return std::filesystem::file_size(file);
}

class SanitizedTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(Tracee("sanitized"))) {
      GTEST_SKIP() << "this compiler has no AddressSanitizer";
    }
  }
  // By turns or free, as the test says.
  ProgramOutput Record(const std::string& bundle,
                       std::vector<std::string> words) const {
    words.insert(words.begin(), {"record", "-o", bundle});
    if (GetParam()) {
      words.insert(words.begin() + 1, "--free");
    }
    return Clew(words);
  }
  const Scratch scratch_;
};

INSTANTIATE_TEST_SUITE_P(, SanitizedTest, testing::Bool(),
                         [](const auto& which) {
                           return std::string(which.param ? "free" : "turns");
                         });

TEST_P(SanitizedTest, ItEndsAsNativelyAndLooksForNoLeaks) {
  for (const char* what : {"clean", "leak"}) {
    const std::string bundle = scratch_.Path(what);
    const ProgramOutput recorded =
        Record(bundle, {"--", Tracee("sanitized"), what});
    ASSERT_EQ(recorded.exit_status, kExitOk) << recorded.text;
    EXPECT_THAT(recorded.text, HasSubstr("did not fail (exit status 0)"));
    EXPECT_THAT(recorded.text, HasSubstr("LSAN_OPTIONS=detect_leaks=0"));
    EXPECT_THAT(recorded.text, HasSubstr("400\n"));
    EXPECT_LT(BytesOf(bundle + "/core"), kBytesMax);
    const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
    EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
    // In which order two threads that ran at once came to the allocator nothing
    // tells but what they did with what they got.
    EXPECT_THAT(solved.text,
                HasSubstr(GetParam() ? "witness found" : "memory-exact"));
  }
}

TEST_P(SanitizedTest, WhoHasSwitchedLeaksOffIsToldNothing) {
  const ProgramOutput recorded = Shell(
      "ASAN_OPTIONS=detect_leaks=0 " + Binary() + " record --only-if-failed " +
      (GetParam() ? "--free " : "") + "-o " + scratch_.Path("b.clew") + " -- " +
      Tracee("sanitized") + " clean 2>&1");
  EXPECT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  EXPECT_THAT(recorded.text, Not(HasSubstr("LeakSanitizer")));
}

// Attached, as no schedule is to be found for it.
TEST_P(SanitizedTest, AnAttachedProcessFailsByItsReport) {
  const AnsweringProgram program("sanitized", "", {"answer"});
  const std::string bundle = scratch_.Path("b.clew");
  ProgramOutput recorded;
  std::thread recorder(
      [&] { recorded = Record(bundle, {"--pid", program.Number()}); });
  program.AwaitRecorder();
  EXPECT_EQ(program.Ask(), "pong\n");
  program.Tell("x\n");
  recorder.join();
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr("failed: exit status 1"));
  EXPECT_LT(BytesOf(bundle + "/start.pb"), kBytesMax);
  EXPECT_LT(BytesOf(bundle + "/core"), kBytesMax);
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  EXPECT_THAT(solved.text, HasSubstr("memory-exact"));
  const ProgramOutput replayed = Clew({"replay", "--once", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
  EXPECT_THAT(replayed.text, HasSubstr("exit status 1"));
}

TEST(SanitizedByTurnsTest, ARaceThatItReportsIsSolvedAndReplayed) {
  if (!std::filesystem::exists(Tracee("sanitized"))) {
    GTEST_SKIP() << "this compiler has no AddressSanitizer";
  }
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  const ProgramOutput recorded = Clew({"record", "--until-fail", "-o", bundle,
                                       "--", Tracee("sanitized"), "race"});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr("failed: exit status 1"));
  ExpectSolvedAndReplayed(bundle, "memory-exact");
}

}  // namespace
}  // namespace clew::e2e
