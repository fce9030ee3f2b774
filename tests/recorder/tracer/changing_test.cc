// Goal: the log tells the code that ran where other code was before, in a
// process and in what it forked.
// Method: changing.c, whose functions have a number each in their code, and
// which prints a hash of those that each thread called; against the numbers in
// the code that the log tells.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/recorder/tracer/traced_run.h"

namespace clew::tracer {
namespace {

// mov eax, 0xc1e00000 | number
constexpr uint8_t kMovEax = 0xb8;
constexpr uint32_t kMark = 0xc1e0;

void AddNumbers(const recorder::CodeStretch& run, uint64_t& hash) {
  for (size_t at = 0; at + 5 <= run.code.size(); ++at) {
    uint32_t value = 0;
    std::memcpy(&value, &run.code[at + 1], sizeof value);
    if (run.code[at] == kMovEax && value >> 16 == kMark) {
      hash = hash * 31 + (value & 0xffff);
    }
  }
}

void ExpectCodeThatRan(const std::vector<std::string>& how, size_t hashes) {
  std::vector<std::string> command = {TestProgram("changing")};
  command.insert(command.end(), how.begin(), how.end());
  std::map<int32_t, uint64_t> by_thread;
  const TracedRun run = RunTraced(
      command, nullptr,
      [&](const ThreadPath& path, const recorder::CodeStretch& straight) {
        AddNumbers(straight, by_thread[path.tid]);
      });
  EXPECT_EQ(run.contradiction, "");
  EXPECT_EQ(run.status, 0);
  std::multiset<std::string> told;
  for (const auto& [tid, hash] : by_thread) {
    if (hash != 0) {
      told.insert(fmt::format("{:#x}", hash));
    }
  }
  std::istringstream lines(run.output);
  std::multiset<std::string> printed;
  for (std::string line; lines >> line;) {
    printed.insert(line);
  }
  EXPECT_EQ(printed.size(), hashes);
  EXPECT_EQ(told, printed);
}

TEST(ChangingCodeTest, ThreadsChangeWhatAllCall) {
  ExpectCodeThatRan({"threads"}, 4);
}

TEST(ChangingCodeTest, ProcessesChangeTheirOwn) {
  ExpectCodeThatRan({"processes"}, 4);
}

// No system call tells of it.
TEST(ChangingCodeTest, ThreadsWriteToWhatAllCall) {
  ExpectCodeThatRan({"threads", "stores"}, 4);
}

TEST(ChangingCodeTest, ProcessesWriteToTheirOwn) {
  ExpectCodeThatRan({"processes", "stores"}, 4);
}

}  // namespace
}  // namespace clew::tracer
