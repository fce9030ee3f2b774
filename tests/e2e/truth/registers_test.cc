// Goal: along the order in which everything truly happened the machine has,
// before each instruction, every register as the CPU had it, what many threads
// have read and written at once included. Method: differential; programs are
// stepped, and their registers read before each instruction. Oracle: the CPU.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "follower/bundle/bundle_recording.h"
#include "follower/recording.h"
#include "follower/run_schedule.h"
#include "recorder/software/record.h"
#include "tests/e2e/clew_command.h"
#include "tests/e2e/truth/true_registers.h"
#include "tests/e2e/truth/true_schedule.h"

namespace clew::e2e {
namespace {

struct RegistersCase {
  const char* name;
  std::vector<std::string> command;  // [0] is below build/tests, or absolute
};
void PrintTo(const RegistersCase& c, std::ostream* out) { *out << c.name; }

class RegistersTest : public testing::TestWithParam<RegistersCase> {};

TEST_P(RegistersTest, AreOnTheMachineAsOnTheCpu) {
  const Scratch scratch;
  TrueRegisters truth;
  recorder::RecordOptions options;
  options.source = recorder::SoftwareSource::kStep;
  options.command = GetParam().command;
  if (!options.command[0].starts_with('/')) {
    options.command[0] = Built("tests/" + options.command[0]);
  }
  options.output = scratch.Path("b.clew");
  options.turns_path = scratch.Path("turns");
  options.before_insn = [&](const TracedProcess& process, Tid thread,
                            uint64_t tick) {
    return truth.Note(process, thread, tick);
  };
  const auto recorded = recorder::Record(options);
  ASSERT_TRUE(recorded.has_value()) << recorded.error().message;
  const auto turns = ReadTurns(options.turns_path);
  ASSERT_TRUE(turns.has_value()) << turns.error().message;
  const auto opened = follower::OpenRecording(options.output);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  auto session = follower::OpenedRecording::Open((*opened)->recording);
  ASSERT_TRUE(session.has_value()) << session.error().message;

  follower::Process process = (*session)->start();
  RegisterChecker checker(process, truth, *turns);
  process.set_engine(&checker);
  const auto left = follower::RunSchedule(process, TrueSchedule(*turns));
  ASSERT_TRUE(left.has_value()) << left.error().message;
  EXPECT_EQ(left->value_or(""), "");
  EXPECT_EQ(checker.compared(), recorded->insns);
  EXPECT_EQ(checker.differing(), 0u);
  for (const std::string& difference : checker.told()) {
    ADD_FAILURE() << difference;
  }
}

// Of tests/recorder/programs.
RegistersCase OfRecorder(const char* name, const char* program,
                         const char* argument) {
  return {
      name,
      {std::string("recorder/programs/recorder_tracee_") + program, argument}};
}

INSTANTIATE_TEST_SUITE_P(Programs, RegistersTest,
                         testing::Values(RegistersCase{
                             "wide_vectors", {"programs/wide_vectors"}}),
                         [](const auto& test) { return test.param.name; });

// In tools/test --all: each takes seconds.
INSTANTIATE_TEST_SUITE_P(
    More, RegistersTest,
    testing::Values(
        RegistersCase{"bank", {"programs/bank"}},
        RegistersCase{"bbuf", {"programs/bbuf"}},
        RegistersCase{"buffer5", {"programs/buffer5"}},
        RegistersCase{"deadlock", {"programs/deadlock"}},
        RegistersCase{"lost_wakeup", {"programs/lost_wakeup"}},
        RegistersCase{"order", {"programs/order"}},
        RegistersCase{"pfscan", {"programs/pfscan"}},
        RegistersCase{"racey", {"programs/racey"}},
        RegistersCase{"sbuf", {"programs/sbuf"}},
        RegistersCase{"uaf", {"programs/uaf"}},
        RegistersCase{"vector_total", {"programs/vector_total"}},
        RegistersCase{"wide_total", {"programs/wide_total"}},
        RegistersCase{"changed_text", {"programs/wide/changed_text"}},
        RegistersCase{"dot_product", {"programs/wide/dot_product"}},
        RegistersCase{"early_table", {"programs/wide/early_table"}},
        RegistersCase{"torn_copy", {"programs/wide/torn_copy"}},
        RegistersCase{"vectors", {"programs/vectors"}},
        RegistersCase{"fpstate", {"programs/fpstate"}},
        RegistersCase{"jit", {"programs/jit"}},
        RegistersCase{"children", {"programs/children"}},
        RegistersCase{"processes", {"programs/processes"}},
        RegistersCase{"channels", {"programs/channels"}},
        RegistersCase{"signalled", {"programs/signalled"}},
        RegistersCase{"lmdb", {"programs/lmdb_threads"}},
        RegistersCase{"sqlite", {"programs/sqlite_threads"}},
        RegistersCase{"static_threads",
                      {"recorder/programs/recorder_tracee_static"}},
        OfRecorder("handler", "endings", "handled"),
        OfRecorder("returning_handler", "endings", "returning"),
        OfRecorder("fault_in_rep", "endings", "rep"),
        OfRecorder("two_signals_at_once", "signals", "together"),
        OfRecorder("cancelled_in_sigwait", "signals", "cancel"),
        OfRecorder("protection", "faults", "protection"),
        OfRecorder("divide", "faults", "divide"),
        OfRecorder("breakpoint", "faults", "breakpoint"),
        OfRecorder("alarm", "faults", "alarm"),
        RegistersCase{"perl",
                      {"/usr/bin/perl", "-e", "print sqrt(2) . qq(\n)"}},
        RegistersCase{"sha512sum", {"/usr/bin/sha512sum", "/bin/true"}},
        RegistersCase{"sort",
                      {"/usr/bin/sort", "--parallel=2", "/etc/passwd"}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace clew::e2e
