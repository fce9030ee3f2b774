// Goal: a program in the tracer runs the instructions that it runs natively, at
// the same addresses, with the same registers where its log has a record.
// Method: CompareWithSteps. Oracle: the CPU.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/recorder/tracer/comparison.h"
#include "tests/recorder/tracer/traced_run.h"

namespace clew::tracer {
namespace {

void Compare(const std::vector<std::string>& command) {
  const ComparedRun run = CompareWithSteps(command);
  fmt::print("{}: {} instructions, {} records, {} fragments\n", command[0],
             run.insns, run.records, run.fragments);
}

TEST(ExactTest, ControlFlowOfEachKind) { Compare({StaticProgram("branches")}); }

TEST(ExactTest, StaticCLibrary) { Compare({StaticProgram("libc_user")}); }

TEST(ExactTest, DynamicLoader) { Compare({"/usr/bin/true"}); }

TEST(ExactTest, RaisedSignals) {
  Compare({TestProgram("signals"), "stepped", "1"});
}

TEST(ExactTest, CodeThatIsWrittenTo) { Compare({StaticProgram("rewritten")}); }

TEST(MoreExactTest, RaisedSignals) {
  Compare({TestProgram("signals"), "stepped", "20"});
}

// Real programs, each for some 0.3 to 20 million instructions.
class ExactProgramTest : public testing::TestWithParam<std::string> {};

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

TEST_P(ExactProgramTest, RunsAsNatively) {
  const std::vector<std::string> command = Words(GetParam());
  if (!std::filesystem::exists(command[0])) {
    GTEST_SKIP() << command[0] << " is not installed";
  }
  Compare(command);
}

INSTANTIATE_TEST_SUITE_P(
    More, ExactProgramTest,
    testing::Values("/usr/bin/sort /etc/passwd",
                    "/usr/bin/gzip -c /etc/services",
                    "/usr/bin/sha512sum /etc/services", "/usr/bin/ls -l /etc",
                    "/usr/bin/find /etc/systemd -name *.conf",
                    "/usr/bin/sqlite3 :memory: select(1+1)",
                    "/usr/bin/python3 -I -S -c print(1)"));

}  // namespace
}  // namespace clew::tracer
