// Goal: every kind of failure is said in its own words. Method: each kind and
// each fault once, on the toy.
#include "replayer/gdb/failure_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/replayer/fake_target.h"

namespace clew::replayer::gdb {
namespace {

using machine::FaultKind;
using testing::HasSubstr;
using testing::StartsWith;

Failure SignalAt(int signal, uint64_t ip) {
  Failure failure;
  failure.kind = FailureKind::kSignal;
  failure.signal = signal;
  failure.thread = Tid(1000);
  failure.ip = TraceeAddr(ip);
  return failure;
}

std::string Words(const Failure& failure, std::optional<machine::Fault> fault,
                  Position at = 4) {
  FakeTarget target(ToyThreads(1, 4), {{.thread = Tid(1000), .until_insn = 4}},
                    failure);
  if (fault) {
    target.set_fault(*fault);
  }
  Timeline timeline(target);
  EXPECT_TRUE(timeline.Seek(at).has_value());
  return DescribeFailure(timeline);
}

TEST(FailureWords, AnAccessIsReadWriteOrJump) {
  const Failure failure = SignalAt(SIGSEGV, 0x401100);
  EXPECT_EQ(Words(failure, {{FaultKind::kUnmapped, 0x10, false}}),
            "thread \"toy-0\" (tid 1000) failed: signal 11 (SIGSEGV), read of "
            "0x10, where nothing is mapped, at 0x401100\n"
            "position 4 of 4, the end\n");
  EXPECT_THAT(Words(failure, {{FaultKind::kProtection, 0x10, true}}),
              HasSubstr("write to 0x10, which the mapping does not allow, at"));
  EXPECT_THAT(Words(failure, {{FaultKind::kUnmapped, 0x401100, false}}),
              HasSubstr("jump to 0x401100, where there is no code, at"));
}

TEST(FailureWords, OtherFaultsAndSignalsThatWereSent) {
  const auto of = [](int signal, FaultKind kind) {
    return Words(SignalAt(signal, 0x401100), machine::Fault{.kind = kind});
  };
  EXPECT_THAT(of(SIGFPE, FaultKind::kDivide), HasSubstr("division by zero"));
  EXPECT_THAT(of(SIGILL, FaultKind::kIllegal), HasSubstr("does not have"));
  EXPECT_THAT(of(SIGTRAP, FaultKind::kBreakpoint), HasSubstr("breakpoint"));
  EXPECT_THAT(of(SIGSEGV, FaultKind::kGeneral), HasSubstr("misaligned"));
  EXPECT_THAT(of(SIGABRT, FaultKind::kNone), HasSubstr("from abort"));
  EXPECT_THAT(of(SIGSEGV, FaultKind::kNone), HasSubstr("by a system call"));
}

TEST(FailureWords, WithoutAFaultOnlyTheSignalIsSaid) {
  EXPECT_EQ(Words(SignalAt(SIGSEGV, 0x401100), {}, 0),
            "thread \"toy-0\" (tid 1000) failed: signal 11 (SIGSEGV), at "
            "0x401100\nposition 0 of 4, the start\n");
  Failure elsewhere = SignalAt(SIGSEGV, 0x401100);
  elsewhere.thread = Tid(7);  // not there yet
  EXPECT_THAT(Words(elsewhere, {}, 1),
              StartsWith("thread (tid 7) failed: signal 11 (SIGSEGV), at"));
}

TEST(FailureWords, AnExitAHangAndNone) {
  Failure failure;
  failure.exit_status = 3;
  EXPECT_THAT(Words(failure, {}),
              StartsWith("the run did not fail: exit status 3\n"));
  failure.kind = FailureKind::kExit;
  failure.thread = Tid(1000);
  EXPECT_THAT(Words(failure, {}),
              StartsWith("thread \"toy-0\" (tid 1000) ended the program: exit "
                         "status 3\n"));
  failure.kind = FailureKind::kHang;
  EXPECT_THAT(Words(failure, {}), StartsWith("the run hung: "));
  failure.kind = FailureKind::kTimeLimit;
  EXPECT_THAT(Words(failure, {}),
              StartsWith("the recording's time limit was over"));
}

}  // namespace
}  // namespace clew::replayer::gdb
