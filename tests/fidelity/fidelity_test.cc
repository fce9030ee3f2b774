// Goal: a correct program is recorded as it runs, solved and replayed; where it
// is not, expected_SOURCE.txt says so and why, neither more nor less.
// Method: programs that check one feature of kernel or CPU each, natively and
// under the built program, from each source of software PT, with one seed where
// it takes one. The
// names of Quick are programs that are quick and have no row; the others have
// the label `full`: a verdict "no answer" or "endless" depends on how fast the
// machine is.
// CLEW_FIDELITY_TABLE=FILE writes the table that is true today into FILE, with
// the recorded reasons where the class is the recorded one and with what was
// seen where not, and CLEW_FIDELITY_SEED is the seed (1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "tests/e2e/clew_command.h"
#include "tests/fidelity/expected.h"
#include "tests/fidelity/run_case.h"

namespace clew::fidelity {
namespace {

// For what has no answer in that time; whatever has one gets kLimitSeconds.
constexpr int kShortLimitSeconds = 30;

struct Case {
  std::string source;  // of `record --source`
  std::string program;
  bool free = false;

  std::string TableName() const {
    return "expected_" + source + (free ? "_free" : "") + ".txt";
  }
  std::vector<std::string> RecordOptions() const;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.program << " by " << c.source << (c.free ? ", free" : "");
}

Expected ExpectedOf(const Case& c) {
  std::ifstream text(CLEW_FIDELITY "/" + c.TableName());
  const auto table = ReadTable(text);
  EXPECT_TRUE(table) << c.TableName() << ": " << table.error().message;
  const auto row = table ? table->find(c.program) : Table::const_iterator();
  return table && row != table->end() ? row->second : Expected();
}

uint64_t Seed() {
  const char* text = std::getenv("CLEW_FIDELITY_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

std::vector<std::string> Case::RecordOptions() const {
  std::vector<std::string> options = {"--source", source};
  if (free) {
    options.emplace_back("--free");
  } else {
    options.insert(options.end(), {"--seed", std::to_string(Seed())});
  }
  return options;
}

class FidelityTest : public testing::TestWithParam<Case> {
 protected:
  static void TearDownTestSuite() {
    for (int i = 0; i < kClasses; ++i) {
      fmt::print("{:16} {:4}\n", NameOf(static_cast<Class>(i)),
                 counts_[static_cast<size_t>(i)]);
    }
  }

  static void Count(Class which) { ++counts_[static_cast<size_t>(which)]; }

  // Appends the row that is true today to the file that is asked for.
  static bool WrittenInto(const char* path, const Outcome& seen) {
    if (path == nullptr) {
      return false;
    }
    if (seen.which != Class::kSame) {
      const Expected row = ExpectedOf(GetParam());
      std::ofstream(path, std::ios::app)
          << RowOf(GetParam().program,
                   {seen.which,
                    row.which == seen.which ? row.reason : seen.evidence})
          << '\n';
    }
    return true;
  }

 private:
  static std::array<int, kClasses> counts_;
};
std::array<int, kClasses> FidelityTest::counts_ = {};

bool MayLastForever(Class which) {
  return which == Class::kNoAnswer || which == Class::kEndless;
}

TEST_P(FidelityTest, EndsAsItsRowSays) {
  const std::string& program = GetParam().program;
  const Ran native = RunNatively(program);
  if (native.exit_status == kNotHere) {
    GTEST_SKIP() << native.out;
  }
  ASSERT_EQ(native.exit_status, 0) << native.out;
  ASSERT_EQ(native.out, "ok\n");
  const char* table = std::getenv("CLEW_FIDELITY_TABLE");
  const Expected expected = ExpectedOf(GetParam());
  const bool brief = table != nullptr || MayLastForever(expected.which);
  const Outcome seen = Follow(GetParam().RecordOptions(), program, native,
                              brief ? kShortLimitSeconds : e2e::kLimitSeconds);
  Count(seen.which);
  fmt::print("{}: {} {}\n", program, NameOf(seen.which), seen.evidence);
  // With threads at once a run may not meet what the row is about.
  const bool is_lucky = GetParam().free && seen.which == Class::kSame;
  if (!WrittenInto(table, seen) && !is_lucky) {
    EXPECT_EQ(NameOf(seen.which), NameOf(expected.which))
        << (seen.which < expected.which
                ? "better than its row: change it"
                : "worse than its row, or than having none")
        << " in " << GetParam().TableName() << "; seen: " << seen.evidence;
  }
}

// By stepping, which is slow, these are enough.
const std::vector<std::string>& QuickByStep() {
  static const std::vector<std::string> quick = {"cpu_time_stamp",
                                                 "thread_first_ends"};
  return quick;
}

const std::vector<std::string>& QuickPrograms() {
  static const std::vector<std::string> quick = {"cpu_flags",
                                                 "epoll_levels",
                                                 "event_descriptor",
                                                 "file_append",
                                                 "file_locks",
                                                 "memory_protect",
                                                 "pipe_fifo",
                                                 "process_status",
                                                 "semaphore_posix",
                                                 "signal_fault",
                                                 "signal_mask",
                                                 "socket_pair",
                                                 "thread_condition",
                                                 "futex_bitset_none",
                                                 "futex_compare",
                                                 "process_execute",
                                                 "process_execute_in_child",
                                                 "thread_affinity",
                                                 "timer_limits_beside_alarm"};
  return quick;
}

// Free recordings have code of their own for what calls write, for calls that
// are interrupted, and for how threads and processes end.
const std::vector<std::string>& QuickFree() {
  static const std::vector<std::string> quick = {
      "event_descriptor",       "memory_dontneed",
      "memory_dontneed_locked", "memory_resident",
      "process_clone_memory",   "process_execute_in_child",
      "process_spawn",          "process_unknown_call",
      "process_vfork",          "semaphore_system_v",
      "signal_fault",           "signal_ignored_blocked",
      "signal_ignored_in_call", "socket_pair",
      "thread_first_ends",      "thread_mutex_robust"};
  return quick;
}

std::vector<std::string> AllBut(const std::vector<std::string>& quick) {
  std::vector<std::string> names = ProgramNames();
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::find(quick, name) != quick.end();
  });
  return names;
}

std::vector<Case> Cases(const char* source,
                        const std::vector<std::string>& programs,
                        bool free = false) {
  std::vector<Case> cases;
  cases.reserve(programs.size());
  for (const std::string& program : programs) {
    cases.push_back({.source = source, .program = program, .free = free});
  }
  return cases;
}

std::string NameOfCase(const testing::TestParamInfo<Case>& info) {
  return info.param.program;
}

INSTANTIATE_TEST_SUITE_P(Quick, FidelityTest,
                         testing::ValuesIn(Cases("qemu", QuickPrograms())),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(Full, FidelityTest,
                         testing::ValuesIn(Cases("qemu",
                                                 AllBut(QuickPrograms()))),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(QuickByTracer, FidelityTest,
                         testing::ValuesIn(Cases("tracer", QuickPrograms())),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(FullByTracer, FidelityTest,
                         testing::ValuesIn(Cases("tracer",
                                                 AllBut(QuickPrograms()))),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(QuickFree, FidelityTest,
                         testing::ValuesIn(Cases("tracer", QuickFree(), true)),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(FullFree, FidelityTest,
                         testing::ValuesIn(Cases("tracer", AllBut(QuickFree()),
                                                 true)),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(QuickByStep, FidelityTest,
                         testing::ValuesIn(Cases("step", QuickByStep())),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(FullByStep, FidelityTest,
                         testing::ValuesIn(Cases("step",
                                                 AllBut(QuickByStep()))),
                         NameOfCase);

}  // namespace
}  // namespace clew::fidelity
