// Goal: which CPUs a program sees does not tell that its threads take turns on
// one: one that is launched has the virtual cores, one that was attached to
// those that it had; and what it chose is kept.
// Method: a program that asks (tests/programs/cpus.c); the oracle is the
// kernel.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <string>

#include "common/os/child_process.h"
#include "tests/e2e/answering_program.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

int CountCpusOf(pid_t process) {
  cpu_set_t cpus;
  return sched_getaffinity(process, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus)
                                                              : 0;
}

std::string Told(int cpus) {
  return fmt::format("{}, on one of them 1\n", cpus);
}

class CpusTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(, CpusTest, testing::Values("tracer", "step"),
                         [](const auto& source) {
                           return std::string(source.param);
                         });

TEST_P(CpusTest, WhatIsLaunchedHasTheVirtualCores) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  const ProgramOutput ran = Shell(fmt::format(
      R"(printf 'c\nf\nb\nc\nt\n' | {} record --cores 3 )"
      "--source {} -o {} -- {} 2>{}",
      Binary(), GetParam(), bundle, Tracee("cpus"), scratch.Path("told")));
  EXPECT_EQ(ran.exit_status, kExitOk) << ran.text;
  EXPECT_EQ(ran.text, Told(3) + Told(CountCpusOf(0)) + "bound 0, to none 1\n" +
                          Told(1) + Told(1));
  ExpectSolvedAndReplayed(bundle);
}

TEST_P(CpusTest, WhatIsAttachedToKeepsItsOwn) {
  const AnsweringProgram program("cpus");
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  const auto recorder =
      SpawnProgram({Binary(), "record", "--source", GetParam(), "--pid",
                    program.Number(), "-o", bundle},
                   {});
  ASSERT_TRUE(recorder.has_value());
  program.AwaitRecorder();
  const std::string all = Told(CountCpusOf(0));
  EXPECT_EQ(program.Ask("c\n"), all);
  EXPECT_EQ(program.Ask("t\n"), all);
  EXPECT_EQ(program.Ask("f\n"), all);
  EXPECT_EQ(program.Ask("b\n"), "bound 0, to none 1\n");
  EXPECT_EQ(program.Ask("c\n"), Told(1));
  EXPECT_EQ(program.Ask("t\n"), Told(1));
  EXPECT_EQ(program.Ask("f\n"), Told(1));
  kill(*recorder, SIGINT);
  EXPECT_EQ(WaitForChild(*recorder).value_or(1), 0);
  EXPECT_EQ(CountCpusOf(program.pid()), 1);
  EXPECT_EQ(program.Ask("c\n"), Told(1));
  ExpectSolvedAndReplayed(bundle);
}

}  // namespace
}  // namespace clew::e2e
