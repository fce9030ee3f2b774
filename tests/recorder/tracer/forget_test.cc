// Goal: a program whose code is forgotten again and again (runtime/forget.h)
// runs as natively, with all of its threads, among signals, and where its code
// changes; and its log tells what ran.
// Method: tables for few fragments. Steps are the oracle of one thread, the
// program's own numbers of several.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/recorder/tracer/comparison.h"
#include "tests/recorder/tracer/traced_run.h"

namespace clew::tracer {
namespace {

void ExpectSameInstructions(const std::vector<std::string>& command,
                            uint32_t fragments_kept, uint32_t forgotten_min) {
  const ComparedRun run = CompareWithSteps(command, fragments_kept);
  fmt::print("{} instructions, forgotten {} times\n", run.insns, run.forgotten);
  EXPECT_GE(run.forgotten, forgotten_min);
}

TEST(ForgetTest, ControlFlowOfEachKind) {
  ExpectSameInstructions({StaticProgram("branches")}, 12, 10);
}

TEST(ForgetTest, CLibrary) {
  ExpectSameInstructions({StaticProgram("libc_user")}, 30, 20);
}

TEST(ForgetTest, DynamicLoader) {
  ExpectSameInstructions({"/usr/bin/true"}, 30, 50);
}

TEST(ForgetTest, RaisedSignals) {
  ExpectSameInstructions({TestProgram("signals"), "stepped", "1"}, 60, 20);
}

TEST(ForgetTest, CodeThatIsWrittenTo) {
  ExpectSameInstructions({StaticProgram("rewritten")}, 4, 10);
}

void ExpectAsNativelyForgetting(const std::vector<std::string>& command,
                                uint32_t fragments_kept,
                                uint32_t forgotten_min) {
  const TracedRun native = RunNatively(command);
  const TracedRun traced = RunTraced(command, nullptr, nullptr, fragments_kept);
  fmt::print("forgotten {} times\n", traced.forgotten);
  EXPECT_EQ(traced.contradiction, "");
  EXPECT_EQ(traced.status, native.status);
  EXPECT_EQ(traced.output, native.output);
  EXPECT_GE(traced.forgotten, forgotten_min);
}

TEST(ForgetTest, Threads) {
  ExpectAsNativelyForgetting({TestProgram("lives"), "threads"}, 40, 50);
}

TEST(ForgetTest, ThreadsThatComeAndGo) {
  ExpectAsNativelyForgetting({TestProgram("lives"), "detached"}, 100, 5);
}

// Of a child that has the program's memory.
TEST(ForgetTest, Vfork) {
  ExpectAsNativelyForgetting({TestProgram("lives"), "vfork"}, 40, 5);
}

TEST(ForgetTest, SignalsAtAnyMoment) {
  ExpectAsNativelyForgetting({TestProgram("signals"), "registers", "100"}, 40,
                             50);
}

}  // namespace
}  // namespace clew::tracer
