// Goal: what a call writes that waited is in memory from its return on, not
// from its entry: other threads that look meanwhile see what was there.
// Method: a program whose threads check that, call by call, and end with 0 only
// if so; its run is recorded, solved and replayed.
#include <gtest/gtest.h>

#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

TEST(LateWritesTest, AreSeenAtTheReturnOfTheCall) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b");
  const ProgramOutput recorded =
      Clew({"record", "--timeout", "100", "-o", bundle, "--",
            Built("tests/recorder/programs/recorder_tracee_late_writes")});
  ASSERT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  ASSERT_EQ(solved.exit_status, kExitOk) << solved.text;
  const ProgramOutput replayed = Clew({"replay", "--check", "2", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
}

}  // namespace
}  // namespace clew::e2e
