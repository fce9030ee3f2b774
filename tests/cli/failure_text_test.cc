// Goal: every kind of end has its words and its JSON, one shape for all
// subcommands.
// Method: each kind, and signals with and without a name.
#include "cli/failure_text.h"

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <vector>

namespace clew::cli {
namespace {

Failure Of(FailureKind kind) {
  return {.kind = kind,
          .signal = kind == FailureKind::kSignal ? SIGSEGV : 0,
          .exit_status = 3,
          .thread = Tid(7),
          .ip = TraceeAddr(0x401000),
          .addr = TraceeAddr(0x10)};
}

TEST(FailureTextTest, EveryKindHasItsWords) {
  struct Case {
    FailureKind kind;
    const char* text;
    const char* outcome;
    const char* details;
  };
  const std::vector<Case> cases = {
      {FailureKind::kNone, "exit status 3", "did not fail (exit status 3)",
       "none; exit status 3"},
      {FailureKind::kSignal, "signal 11 (SIGSEGV) in thread 7 at 0x401000",
       "failed: signal 11 (SIGSEGV) in thread 7 at 0x401000",
       "signal 11 (SIGSEGV) in thread 7 at 0x401000, address 0x10"},
      {FailureKind::kExit, "exit status 3", "failed: exit status 3",
       "exit status 3 by thread 7"},
      {FailureKind::kHang, "hang", "failed: hang",
       "hang: no thread could go on"},
      {FailureKind::kTimeLimit, "time limit", "failed: time limit",
       "time limit: the program had not ended when it was over"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(FailureText(Of(c.kind)), c.text);
    EXPECT_EQ(OutcomeText(Of(c.kind)), c.outcome);
    EXPECT_EQ(FailureDetails(Of(c.kind)), c.details);
  }
}

TEST(FailureTextTest, ASignalWithoutANameKeepsItsNumber) {
  Failure failure = Of(FailureKind::kSignal);
  failure.signal = SIGRTMIN + 1;
  EXPECT_EQ(FailureText(failure), "signal 35 (SIG?) in thread 7 at 0x401000");
}

TEST(FailureTextTest, TheJsonHasEveryField) {
  EXPECT_EQ(FailureJson(Of(FailureKind::kSignal)).dump(),
            R"({"kind":"signal","signal":11,"exit_status":3,"thread":7,)"
            R"("ip":"0x401000","addr":"0x10"})");
  for (const FailureKind kind :
       {FailureKind::kNone, FailureKind::kSignal, FailureKind::kExit,
        FailureKind::kHang, FailureKind::kTimeLimit}) {
    EXPECT_EQ(FailureJson(Of(kind))["kind"], ToString(kind));
  }
}

}  // namespace
}  // namespace clew::cli
