// Goal: what few programs do goes under the recorder as it goes without, and
// what was recorded is solved and replayed: the first thread ends first, a call
// is made that the kernel does not have.
// Method: a program that checks what happens, and ends with 0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;

// Returns the output of the recorded run.
std::string FollowUnusual(const char* how) {
  const Scratch scratch;
  return FollowRun(
      {Built("tests/recorder/programs/recorder_tracee_endings"), how},
      /*seed=*/1, scratch.Path("run.clew"));
}

// The kernel keeps it as a zombie until the last thread has ended.
TEST(UnusualProgramsTest, TheFirstThreadMayEndFirst) {
  EXPECT_THAT(FollowUnusual("first_ends"), HasSubstr("the last thread ends"));
}

TEST(UnusualProgramsTest, TheFirstThreadMayBeCancelled) {
  EXPECT_THAT(FollowUnusual("first_cancelled"),
              HasSubstr("the last thread ends"));
}

TEST(UnusualProgramsTest, ACallThatTheKernelDoesNotHaveFails) {
  FollowUnusual("no_such_call");
}

TEST(UnusualProgramsTest, RareCallsAreRecorded) { FollowUnusual("rare_calls"); }

}  // namespace
}  // namespace clew::e2e
