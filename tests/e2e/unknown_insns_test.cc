// Goal: instructions that the machine lacks are told when the run is recorded,
// with their names and places, and nothing is told where there are none.
// Method: a program with one such instruction, and one without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

ProgramOutput Record(const std::string& bundle,
                     std::vector<std::string> command) {
  std::vector<std::string> arguments = {"record", "-o", bundle, "--"};
  command[0] = Built("tests/recorder/programs/recorder_tracee_" + command[0]);
  arguments.insert(arguments.end(), command.begin(), command.end());
  return Clew(arguments);
}

TEST(UnknownInsnsTest, AreToldAtTheEndOfRecord) {
  const Scratch scratch;
  const ProgramOutput rare = Record(scratch.Path("a"), {"endings", "rare"});
  EXPECT_EQ(rare.exit_status, kExitOk) << rare.text;
  EXPECT_THAT(rare.text, HasSubstr("1 instructions that cannot be replayed"));
  EXPECT_THAT(rare.text, HasSubstr("  sldt eax at 0x"));
  EXPECT_THAT(rare.text, HasSubstr("(0f 00 c0), recorder_tracee_endings+0x"));
  EXPECT_NE(Clew({"solve", scratch.Path("a")}).exit_status, kExitOk);
  const ProgramOutput plain = Record(scratch.Path("b"), {"threads"});
  EXPECT_THAT(plain.text, Not(HasSubstr("warning")));
}

}  // namespace
}  // namespace clew::e2e
