// Goal: stock gdb can do to a replay what it can do to a process, and go back.
// Method: drive the real gdb in batch mode against the stub over a toy machine
// whose run is known instruction by instruction, and compare what gdb prints.
// The program's file is served under a name that does not exist here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "common/os/scratch_folder.h"
#include "replayer/gdb/launch_gdb.h"
#include "tests/replayer/fake_target.h"

namespace clew::replayer::gdb {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kRecordedPath = "/gone/toy";

std::vector<std::byte> ToyAuxv() {
  // elf.h: AT_PAGESZ, AT_ENTRY, AT_NULL.
  const std::array<uint64_t, 6> words = {6, 4096, 9, kToyCode, 0, 0};
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

// Rounds of: two instructions of thread 0, three of thread 1, four of thread 2.
std::vector<ScheduleStep> Rounds(uint64_t rounds) {
  std::vector<ScheduleStep> steps;
  for (uint64_t i = 1; i <= rounds; ++i) {
    for (uint64_t t = 0; t < 3; ++t) {
      steps.push_back({.thread = Tid(static_cast<int32_t>(1000 + t)),
                       .until_insn = i * (t + 2)});
    }
  }
  return steps;
}

class GdbTest : public testing::Test {
 protected:
  void SetUp() override {
    failure_.kind = FailureKind::kSignal;
    failure_.signal = 11;
    failure_.thread = Tid(1001);
    failure_.ip = TraceeAddr(0x401100);
    failure_.addr = TraceeAddr(0xdead);
  }

  // What gdb prints for `commands`, starting at `start`.
  std::string Gdb(const std::vector<std::string>& commands, Position start = 0,
                  uint64_t rounds = 40) {
    auto threads = ToyThreads(3, 7);
    threads[2].born = 5;
    FakeTarget target(threads, Rounds(rounds), failure_);
    target.set_exec(kRecordedPath, ToyAuxv());
    target.set_fault(fault_);
    target.set_cpu_features(cpu_features_);
    target.set_before_run(before_run_);
    LoadCode(target);
    Timeline timeline(target, {.checkpoint_insns = 16});
    EXPECT_TRUE(timeline.Seek(start).has_value());
    ImageFiles files;
    files.Add(kRecordedPath, TOY_PROGRAM);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const auto status =
        RunGdb({.commands = commands, .batch = true, .quiet = quiet_}, timeline,
               files);
    std::string printed = testing::internal::GetCapturedStdout();
    printed += testing::internal::GetCapturedStderr();
    EXPECT_TRUE(status.has_value());
    position_ = timeline.position();
    return printed;
  }

  // The toy's code page holds the same bytes as the file, which gdb reads.
  static void LoadCode(FakeTarget& target) {
    const std::array<std::byte, 4> nop = {std::byte(0x0f), std::byte(0x1f),
                                          std::byte(0x40), std::byte(0)};
    for (uint64_t at = kToyCode; at < kToyCode + 0x1000; at += nop.size()) {
      ASSERT_TRUE(target.memory().Poke(at, nop));
    }
  }

  Failure failure_;
  machine::Fault fault_;
  x86::FeatureSet cpu_features_ = x86::kX86_64V2;
  bool quiet_ = false;
  std::function<void(Position)> before_run_;
  Position position_ = 0;
};

TEST_F(GdbTest, ThreadsHaveRecordedIdsAndNamesAndComeToLife) {
  const std::string early = Gdb({"info threads"});
  EXPECT_THAT(early,
              ContainsRegex(R"(\* 1 +Thread 1000 "toy-0".* toy_0 \(\))"));
  EXPECT_THAT(early, ContainsRegex(R"(  2 +Thread 1001 "toy-1")"));
  EXPECT_THAT(early, Not(HasSubstr("toy-2")));
  EXPECT_THAT(Gdb({"info threads"}, 9), HasSubstr("Thread 1002 \"toy-2\""));
}

TEST_F(GdbTest, SymbolsComeFromTheServedFileThoughTheOriginalIsGone) {
  const std::string printed =
      Gdb({"info symbol $pc", "info line *$pc", "info auxv"});
  EXPECT_THAT(printed, HasSubstr("toy_0 in section .text"));
  EXPECT_THAT(printed, HasSubstr("toy_program.s\""));
  EXPECT_THAT(printed, ContainsRegex("AT_ENTRY.*0x401000"));
}

TEST_F(GdbTest, RegistersAndMemoryAreTheReplays) {
  const std::string printed =
      Gdb({"p $rax", "p/x $rsp", "p/x $xmm1.v2_int64", "p $eflags", "p/x $cs",
           "x/i $pc", "x/gx 0x600000", "x/gx 0x10"},
          9);
  EXPECT_THAT(printed, HasSubstr("$1 = 2\n"));
  EXPECT_THAT(printed, HasSubstr("$2 = 0x7ff800\n"));
  EXPECT_THAT(printed, HasSubstr("{0x123456789abcdef, 0xfedcba9876543210}"));
  EXPECT_THAT(printed, HasSubstr("$4 = [ IF ]\n"));
  EXPECT_THAT(printed, HasSubstr("$5 = 0x33\n"));
  EXPECT_THAT(printed, ContainsRegex("=> 0x401008 <toy_0\\+8>:.*nopl"));
  EXPECT_THAT(printed, HasSubstr("<counters>:\t0x0000000000000001\n"));
}

TEST_F(GdbTest, RegistersOfAvx512AreTheReplays) {
  const std::vector<std::string> commands = {
      "p/x $zmm1.v8_int64", "p/x $ymm31.v4_int64", "p/x $zmm31.v8_int64[3]",
      "p/x $k5"};
  EXPECT_THAT(Gdb(commands), Not(HasSubstr("0x222"))) << "without AVX-512";
  cpu_features_ = {x86::Feature::kAvx512f};
  const std::string printed = Gdb(commands);
  EXPECT_THAT(printed, HasSubstr("{0x123456789abcdef, 0xfedcba9876543210, 0x0, "
                                 "0x0, 0x222, 0x0, 0x0, 0x333}"));
  EXPECT_THAT(printed, HasSubstr("{0x444, 0x0, 0x0, 0x555}"));
  EXPECT_THAT(printed, HasSubstr("$3 = 0x555\n"));
  EXPECT_THAT(printed, HasSubstr("$4 = 0x666\n"));
}

TEST_F(GdbTest, AReplayCannotBeChanged) {
  const std::string printed = Gdb({"p $rax = 5", "p *(long*)&shared = 5",
                                   "p $rax", "x/gx &shared", "p toy_1()"});
  EXPECT_THAT(printed, HasSubstr("a replay is read-only"));
  EXPECT_THAT(printed, HasSubstr("Cannot access memory at address 0x600100"));
  EXPECT_THAT(printed, ContainsRegex(R"(\$[0-9] = 0
)"));
  EXPECT_THAT(printed, Not(HasSubstr("= 5")));
}

TEST_F(GdbTest, StepiFollowsTheThreadAndReverseStepiUndoesIt) {
  const std::string printed = Gdb(
      {"stepi", "stepi", "stepi", "p $rax", "info symbol $pc", "reverse-stepi",
       "p $rax", "reverse-stepi", "reverse-stepi", "p $rax", "reverse-stepi"});
  // The third instruction of thread 0 is the first of its second round.
  EXPECT_THAT(printed, HasSubstr("$1 = 3\n"));
  EXPECT_THAT(printed, HasSubstr("toy_0 + 12 in section"));
  EXPECT_THAT(printed, HasSubstr("$2 = 2\n"));
  EXPECT_THAT(printed, HasSubstr("$3 = 0\n"));
  EXPECT_THAT(printed, HasSubstr("No more reverse-execution history"));
  EXPECT_EQ(position_, 0u);
}

TEST_F(GdbTest, ReverseStepiOfAnotherThreadGoesToItsLastInstruction) {
  // At 9 all three have run one round; thread 1 last ran at 4.
  const std::string printed = Gdb({"info threads", "thread 2", "p $rax",
                                   "reverse-stepi", "p $rax", "p $_thread"},
                                  9);
  EXPECT_THAT(printed, HasSubstr("$1 = 3\n"));
  EXPECT_THAT(printed, HasSubstr("$2 = 2\n"));
  EXPECT_THAT(printed, HasSubstr("$3 = 2\n"));
  EXPECT_EQ(position_, 4u);
}

TEST_F(GdbTest, BreakpointsStopInBothDirections) {
  const std::string printed =
      Gdb({"break *(toy_1 + 8)", "hbreak toy_2", "continue", "p $rax",
           "continue", "p $rax", "continue", "p $rax", "reverse-continue",
           "p $rax", "p $_thread", "info breakpoints"},
          0);
  // Thread 1 comes to toy_1 + 8 with 2 instructions retired (position 4),
  // thread 2 to toy_2 with 0 (5), then thread 2 again with 7 (23), but thread 1
  // with 9 (31).
  EXPECT_THAT(printed, HasSubstr("$1 = 2\n"));
  EXPECT_THAT(printed, HasSubstr("$2 = 0\n"));
  EXPECT_THAT(printed, HasSubstr("$3 = 7\n"));
  EXPECT_THAT(printed, HasSubstr("$4 = 0\n"));
  EXPECT_THAT(printed, HasSubstr("$5 = 3\n"));
  EXPECT_THAT(printed, ContainsRegex("1 +breakpoint.*\n.*already hit 1 time"));
  EXPECT_THAT(printed,
              ContainsRegex("2 +hw breakpoint.*\n.*already hit 3 times"));
  EXPECT_EQ(position_, 5u);
}

TEST_F(GdbTest, AWatchpointStopsAfterTheWriteForwardsAndBeforeItBackwards) {
  const std::string printed =
      Gdb({"watch *(long*)&shared", "continue", "p $_thread", "continue",
           "p $_thread", "reverse-continue", "p *(long*)&shared", "p $_thread",
           "info symbol $pc"});
  EXPECT_THAT(printed, HasSubstr("Hardware watchpoint 1"));
  // Thread 1's third instruction is first (position 4), then thread 2's (7).
  EXPECT_THAT(printed, HasSubstr("Old value = 0\nNew value = 1"));
  EXPECT_THAT(printed, HasSubstr("$1 = 2\n"));
  EXPECT_THAT(printed, HasSubstr("Old value = 1\nNew value = 2"));
  EXPECT_THAT(printed, HasSubstr("$2 = 3\n"));
  EXPECT_THAT(printed, HasSubstr("Old value = 2\nNew value = 1"));
  EXPECT_THAT(printed, HasSubstr("$3 = 1\n"));
  EXPECT_THAT(printed, HasSubstr("$4 = 3\n"));
  EXPECT_THAT(printed, HasSubstr("toy_2 + 8 in section"));
  EXPECT_EQ(position_, 7u);
}

TEST_F(GdbTest, ReadAndAccessWatchpoints) {
  EXPECT_THAT(Gdb({"rwatch *(long*)&shared", "continue", "info symbol $pc"}),
              HasSubstr("toy_2 + 16 in section"));
  EXPECT_EQ(position_, 9u);
  EXPECT_THAT(Gdb({"awatch *(long*)&shared", "continue", "info symbol $pc"}),
              HasSubstr("toy_1 + 12 in section"));
  EXPECT_EQ(position_, 5u);
}

TEST_F(GdbTest, TheEndShowsTheFailureInItsThread) {
  const std::string printed =
      Gdb({"continue", "p $_thread", "p $_siginfo.si_signo",
           "p $_siginfo._sifields._sigfault.si_addr", "continue",
           "reverse-stepi", "p $_thread", "reverse-continue"});
  EXPECT_THAT(printed, HasSubstr("received signal SIGSEGV"));
  EXPECT_THAT(printed, HasSubstr("$1 = 2\n"));
  EXPECT_THAT(printed, HasSubstr("$2 = 11\n"));
  EXPECT_THAT(printed, HasSubstr("0xdead"));
  EXPECT_THAT(printed, HasSubstr("$4 = 2\n"));
  EXPECT_THAT(printed, HasSubstr("No more reverse-execution history"));
  EXPECT_EQ(position_, 0u);
}

TEST_F(GdbTest, OpenedAtTheEndGdbShowsTheFailureAtOnce) {
  const std::string printed =
      Gdb({"p $_siginfo.si_signo", "info threads", "watch *(long*)&shared",
           "continue", "reverse-continue", "p $_thread"},
          360);
  EXPECT_THAT(printed, HasSubstr("$1 = 11\n"));
  EXPECT_THAT(printed, ContainsRegex(R"(\* 2 +Thread 1001)"));
  EXPECT_THAT(printed, HasSubstr("received signal SIGSEGV"));  // once more
  EXPECT_THAT(printed, HasSubstr("Hardware watchpoint 1"));
  EXPECT_THAT(printed, ContainsRegex("Old value = [0-9]+"));
  EXPECT_LT(position_, 360u);
}

TEST_F(GdbTest, ARunThatExitsEndsWithHistory) {
  failure_ = {};
  const std::string printed = Gdb({"continue", "continue", "reverse-stepi"});
  EXPECT_THAT(printed, HasSubstr("No more reverse-execution history"));
  EXPECT_EQ(position_, 359u);
}

// It comes in the middle; what is left of the run takes minutes, if need be.
TEST_F(GdbTest, InterruptReachesARunThatIsLong) {
  constexpr Position kMiddle = 20'000;
  constexpr uint64_t kRounds = 40'000;
  const ScratchFolder folder = *ScratchFolder::Make("clew-gdb-test");
  const std::string pid_file = folder.path() + "/pid";
  bool sent = false;
  before_run_ = [&](Position position) {
    pid_t gdb = 0;
    if (sent) {
      usleep(500'000);
    } else if (position >= kMiddle && std::ifstream(pid_file) >> gdb) {
      sent = kill(gdb, SIGINT) == 0;
    }
  };
  const std::string printed = Gdb(
      {"python import os",
       fmt::format("python print(os.getpid(), file=open('{}', 'w'))", pid_file),
       "watch *(long*)0x600800", "continue", "p $_siginfo.si_signo"},
      0, kRounds);
  EXPECT_TRUE(sent);
  EXPECT_THAT(printed, HasSubstr("SIGINT"));
  EXPECT_GE(position_, kMiddle);
  EXPECT_LT(position_, kRounds * 9);
}

TEST_F(GdbTest, MonitorSeeks) {
  const std::string printed =
      Gdb({"monitor position", "monitor seek 100", "p $rax",
           "monitor seek 1000000", "monitor what"});
  EXPECT_THAT(printed, HasSubstr("0 of 360"));
  EXPECT_THAT(printed, HasSubstr("at 100 of 360"));
  EXPECT_THAT(printed, HasSubstr("$1 = 23\n"));
  EXPECT_THAT(printed, HasSubstr("seek wants start, end or a number"));
  EXPECT_EQ(position_, 100u);
}

// Thread 2 is selected, and thread 3 exists, where the seek comes from.
TEST_F(GdbTest, ASeekLooksLikeAStop) {
  const std::string printed =
      Gdb({"thread 2", "x/gx $rsp", "p $rax", "monitor seek 0", "p $_thread",
           "info threads", "p $rax", "bt", "monitor seek end", "p $_thread",
           "info threads", "p $rax"},
          9);
  EXPECT_THAT(printed, HasSubstr("$1 = 3\n"));
  EXPECT_THAT(printed, HasSubstr("[Switching to thread 1 (Thread 1000)]\n#0 "));
  EXPECT_THAT(printed, HasSubstr("$2 = 1\n"));
  EXPECT_THAT(printed, ContainsRegex(R"(\* 1 +Thread 1000 "toy-0".*
  2 +Thread 1001 "toy-1".*
\$3 = 0
#0  toy_0 \(\))"));
  EXPECT_THAT(printed, HasSubstr("[Switching to thread 2 (Thread 1001)]\n#0 "));
  EXPECT_THAT(printed, ContainsRegex("\\$5 = 120\n"));
  EXPECT_EQ(position_, 360u);
}

TEST_F(GdbTest, AMonitorCommandThatDoesNotMoveLeavesTheThreadSelected) {
  const std::string printed =
      Gdb({"thread 2", "monitor position", "p $_thread", "p $rax"}, 9);
  EXPECT_THAT(printed, HasSubstr("$1 = 2\n$2 = 3\n"));
}

// gdb ignores a change to the value that it remembers.
TEST_F(GdbTest, AWatchpointHasItsOldValueFromWhereASeekWent) {
  const std::string printed =
      Gdb({"watch *(long*)&shared", "monitor seek start", "continue",
           "reverse-continue", "monitor seek 4", "continue"},
          5);
  EXPECT_THAT(printed, HasSubstr("Old value = 0\nNew value = 1"));
  EXPECT_EQ(position_, 5u);
}

TEST_F(GdbTest, OpensWithTheReasonOfTheFailureAndNoNoise) {
  fault_ = {.kind = machine::FaultKind::kUnmapped, .addr = 0xdead};
  const std::string printed = Gdb({}, 360);
  EXPECT_THAT(
      printed,
      StartsWith(
          R"(thread 2 "toy-1" (tid 1001) failed: )"
          "signal 11 (SIGSEGV), read of 0xdead, where "
          "nothing is mapped, at 0x401100\n"
          "position 360 of 360, the end\n#0  0x0000000000401104 in toy_1 ()"));
  EXPECT_THAT(printed, Not(HasSubstr("warning")));
  EXPECT_THAT(printed, Not(HasSubstr("Reading")));
  EXPECT_THAT(printed, Not(HasSubstr("try:"))) << "nobody types here";
  EXPECT_THAT(Gdb({"clew-show-next"}), HasSubstr("try: backtrace"));
}

TEST_F(GdbTest, QuietlyItOpensWithTheFrameAlone) {
  quiet_ = true;
  EXPECT_THAT(Gdb({}, 360), StartsWith("#0  0x0000000000401104 in toy_1 ()"));
}

TEST(Launch, AMissingGdbIsAnErrorThatSaysSo) {
  FakeTarget target(ToyThreads(1, 4), {}, {});
  Timeline timeline(target);
  ImageFiles files;
  const auto status =
      RunGdb({.gdb = "/no/gdb", .commands = {}}, timeline, files);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kSystem);
  EXPECT_THAT(status.error().message, HasSubstr("cannot start /no/gdb"));
}

TEST(Launch, AGdbThatLeavesAtOnceIsAnError) {
  FakeTarget target(ToyThreads(1, 4), {}, {});
  Timeline timeline(target);
  ImageFiles files;
  const auto status = RunGdb({.gdb = "false", .commands = {}}, timeline, files);
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message, HasSubstr("before it connected"));
}

}  // namespace
}  // namespace clew::replayer::gdb
