// Goal: `clew record --source perf --inputs` of a command, or of a process that
// runs, leaves what a replay begins with and is fed with: start state and log
// together determine a program of one thread to its last call. A process goes
// on as if nothing had been. Method: programs run natively, at full speed,
// under the built recorder (no PT is needed); then the machine runs each from
// start.pb on, without a trace, and gets what the log says. Every call has to
// be the one that was recorded, with its arguments, and output what was output.
// Skipped, with the reason, where perf or eBPF is refused.
#include <asm/prctl.h>
#include <asm/unistd_64.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bundle/bundle.h"
#include "bundle/input_log.h"
#include "common/digest.h"
#include "common/linux/syscall_result.h"
#include "common/linux/syscall_table.h"
#include "common/os/child_process.h"
#include "common/os/process_state.h"
#include "common/x86/opcode.h"
#include "follower/kernel/call_check.h"
#include "follower/kernel/call_mappings.h"
#include "follower/start_registers.h"
#include "follower/told_insn.h"
#include "machine/cpu.h"
#include "machine/decode.h"
#include "tests/e2e/answering_program.h"
#include "tests/e2e/imported/hardware_fixture.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;

// Runs a program of one thread from its start state.
class FreeRun {
 public:
  FreeRun(const StartState& start, InputSource& inputs)
      : told_(start.told_cpu.value_or(ToldCpu())),
        thread_(start.first.thread),
        inputs_(inputs),
        brk_(start.brk.as_int()),
        registers_(follower::StartRegisters(start.first, start)),
        code_(start.cpu_features) {
    for (const StartSegment& segment : start.segments) {
      memory_.Map(segment.addr.as_int(), segment.size_bytes, segment.prot);
      memory_.Poke(segment.addr.as_int(), segment.bytes);
    }
  }

  // Returns why it went another way; empty: it ended by exit_group.
  std::string Run() {
    machine::Machine machine(registers_, memory_, code_);
    while (!ended_) {
      const machine::Stop stop = machine.Run(1'000'000);
      insns_ += stop.insns_retired;
      std::string wrong;
      if (stop.kind == machine::StopKind::kSyscall) {
        wrong = Call();
      } else if (stop.kind == machine::StopKind::kNondeterministic) {
        wrong = Tell(machine);
      } else if (stop.kind != machine::StopKind::kBudget) {
        wrong = "stops: " + Insn();
      }
      if (!wrong.empty()) {
        return fmt::format("after {} instructions and {} calls: {}", insns_,
                           calls_, wrong);
      }
    }
    return {};
  }
  uint64_t insns() const { return insns_; }
  uint64_t outputs() const { return outputs_; }

 private:
  // At rip.
  std::span<const std::byte> InsnBytes() {
    return std::span(insn_).first(memory_.Fetch(registers_.rip, insn_));
  }
  std::string Insn() {
    return machine::Decoder().Describe(registers_.rip, InsnBytes());
  }

  std::string Tell(machine::Machine& machine) {
    const auto told = follower::ToldResult(told_, InsnBytes(), registers_,
                                           StreamBlock(), CoreId(0));
    if (!told) {
      return "nothing says what this gave: " + Insn();
    }
    machine.CompleteInsn(*told);
    ++insns_;
    return {};
  }

  std::string Call() {
    const auto next = inputs_.Next(thread_);
    if (!next || !*next) {
      return "a call that is not in the log";
    }
    if (const auto* const unknown = std::get_if<UnknownInput>(&**next)) {
      return "unknown: " + unknown->cause;
    }
    const auto* const call = std::get_if<SyscallInput>(&**next);
    if (call == nullptr) {
      return "a call where the log has another input";
    }
    ++calls_;
    if (const auto differs = follower::OtherArguments(registers_, *call)) {
      return *differs;
    }
    if (call->output_digest) {
      const auto output = follower::OutputOf(memory_, *call);
      if (!output || Digest(*output) != *call->output_digest) {
        return SyscallName(call->number) + " outputs other bytes";
      }
      outputs_ += output->size();
    }
    ended_ = call->number == __NR_exit_group;
    return call->result ? Return(*call) : "";
  }

  std::string Return(const SyscallInput& call) {
    const int64_t result = *call.result;
    if (!IsErrorResult(result)) {
      follower::ApplyMappings(call, memory_, brk_);
    }
    if (call.number == __NR_arch_prctl && call.args[0] == ARCH_SET_FS) {
      registers_.fs_base = call.args[1];
    }
    for (const MemoryWrite& write : call.writes) {
      if (!memory_.Poke(write.addr.as_int(), write.bytes)) {
        return fmt::format("{} writes at {}, which is not mapped",
                           SyscallName(call.number), write.addr);
      }
    }
    registers_.gpr[kRax] =
        result == kRestartSys ? call.number : static_cast<uint64_t>(result);
    registers_.rip = IpAfterCall(result, registers_.rip);
    return {};
  }

  const ToldCpu told_;
  const Tid thread_;
  InputSource& inputs_;
  uint64_t brk_;
  machine::Memory memory_;
  machine::Registers registers_;
  machine::CodeCache code_;
  std::array<std::byte, x86::kInsnBytesMax> insn_ = {};
  uint64_t insns_ = 0;
  uint64_t calls_ = 0;
  uint64_t outputs_ = 0;
  bool ended_ = false;
};

class HardwareStartTest : public HardwareFixture {
 protected:
  HardwareStartTest() : HardwareFixture({"--inputs"}) {}

  // Records `command`.
  std::string RecordProgram(const std::vector<std::string>& command,
                            int status) {
    std::string bundle = scratch_.Path("run.clew");
    std::vector<std::string> words = {Binary()};
    std::vector<std::string> more = {"--"};
    more.insert(more.end(), command.begin(), command.end());
    const auto record = Record(bundle, more);
    words.insert(words.end(), record.begin(), record.end());
    const auto run = e2e::Run(words);
    EXPECT_EQ(run.exit_status, status) << run.text;
    return bundle;
  }
};

struct ProgramCase {
  const char* name;
  std::vector<std::string> command;  // [0] is a test program, or absolute
};
void PrintTo(const ProgramCase& c, std::ostream* out) { *out << c.name; }

constexpr const char* kLines = "LINES";  // in a command: a file of 1000 lines

class ProgramStartTest : public HardwareStartTest,
                         public testing::WithParamInterface<ProgramCase> {};

TEST_P(ProgramStartTest, StartAndInputsDetermineAProgram) {
  const std::string file = scratch_.Path("lines");
  {
    std::ofstream lines(file);
    for (int i = 0; i < 1000; ++i) {
      lines << (i * 7919) % 1000 << " line\n";
    }
  }
  std::vector<std::string> command = GetParam().command;
  std::ranges::replace(command, kLines, file);
  if (!command[0].starts_with('/')) {
    command[0] = Tracee(command[0]);
  }
  const std::string bundle = RecordProgram(command, kExitOk);
  const auto start = bundle::ReadStart(bundle + "/start.pb");
  ASSERT_TRUE(start) << start.error().message;
  ASSERT_TRUE(start->told_cpu);
  const auto inputs = bundle::InputLog::Open(bundle + "/inputs.pb");
  ASSERT_TRUE(inputs) << inputs.error().message;
  FreeRun run(*start, **inputs);
  EXPECT_EQ(run.Run(), "");
  EXPECT_GT(run.insns(), 100u);
  if (command.size() > 1) {
    EXPECT_GT(run.outputs(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, ProgramStartTest,
    testing::Values(ProgramCase{"date", {"/usr/bin/date"}},
                    ProgramCase{"wc", {"/usr/bin/wc", kLines}},
                    ProgramCase{"static_strings", {"static_strings"}}),
    [](const auto& test) { return test.param.name; });

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(
    More, ProgramStartTest,
    testing::Values(
        ProgramCase{"true", {"/bin/true"}},
        ProgramCase{"sh",
                    {"/bin/sh", "-c",
                     "x=0; while [ $x -lt 200 ]; do x=$((x+1)); done; "
                     "echo $x"}},
        ProgramCase{"sort", {"/usr/bin/sort", "--parallel=1", "-n", kLines}},
        ProgramCase{"od", {"/usr/bin/od", "-c", kLines}}),
    [](const auto& test) { return test.param.name; });

// What start.pb and inputs.pb of a bundle determine; empty: a program's whole
// run, with output.
std::string WhyNotDetermined(const std::string& bundle) {
  const auto start = bundle::ReadStart(bundle + "/start.pb");
  if (!start) {
    return start.error().message;
  }
  const auto inputs = bundle::InputLog::Open(bundle + "/inputs.pb");
  if (!inputs) {
    return inputs.error().message;
  }
  FreeRun run(*start, **inputs);
  const std::string why = run.Run();
  return why.empty() && run.outputs() == 0 ? "it output nothing" : why;
}

// `clew record --source perf --inputs --pid`, while it runs.
class PerfRecorder {
 public:
  // Returns once the program is recorded: it answers, and the functions of its
  // vDSO are calls.
  PerfRecorder(std::vector<std::string> words,
               const AnsweringProgram& program) {
    words.insert(words.begin(), Binary());
    const auto pid = SpawnProgram(words, {});
    pid_ = pid.value();
    const std::string stat = fmt::format("/proc/{}/stat", pid_);
    while (ProcessState(stat) != 'Z' &&
           program.Ask().find("changed code") == std::string::npos) {
    }
  }
  // Returns its exit status.
  int Await() const {
    const auto status = WaitForChild(pid_);
    return status ? *status : -1;
  }
  void Tell(int signal) const { kill(pid_, signal); }

 private:
  pid_t pid_ = 0;
};

// The moment: how often the program had answered.
class MomentTest : public HardwareStartTest,
                   public testing::WithParamInterface<int> {};

TEST_P(MomentTest, ARunningProcessIsDeterminedFromAnyMomentOn) {
  AnsweringProgram program("answers");
  for (int asked = 0; asked < GetParam(); ++asked) {
    program.Ask();
  }
  const std::string bundle = scratch_.Path("run.clew");
  const PerfRecorder recorder(Record(bundle, {"--pid", program.Number()}),
                              program);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(program.Ask(), HasSubstr("changed code"));
  }
  program.Hush();
  EXPECT_EQ(recorder.Await(), kExitOk);
  EXPECT_EQ(WhyNotDetermined(bundle), "");
}

INSTANTIATE_TEST_SUITE_P(Moments, MomentTest, testing::Values(0, 1));

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, MomentTest, testing::Range(2, 10));

// A call that waits with a time limit, stopped in it, goes on as
// restart_syscall.
TEST_F(HardwareStartTest, AProcessThatWasStoppedInACallIsDetermined) {
  AnsweringProgram program("answers");
  const std::string bundle = scratch_.Path("stopped.clew");
  const PerfRecorder recorder(Record(bundle, {"--pid", program.Number()}),
                              program);
  const std::string stat = "/proc/" + program.Number() + "/stat";
  const auto await = [&](char state) {
    while (ProcessState(stat) != state) {
      Nap();
    }
  };
  for (int i = 0; i < 3; ++i) {
    program.Tell("s\n");
    await('S');
    kill(program.pid(), SIGSTOP);
    await('T');
    kill(program.pid(), SIGCONT);
    EXPECT_THAT(program.Ask(), HasSubstr("changed code"));
  }
  program.Hush();
  EXPECT_EQ(recorder.Await(), kExitOk);
  EXPECT_EQ(WhyNotDetermined(bundle), "");
}

TEST_F(HardwareStartTest, AProcessGoesOnAsIfNothingHadBeen) {
  const AnsweringProgram program("answers");
  const std::string before = program.Traces();
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string bundle = scratch_.Path(std::to_string(signal));
    const PerfRecorder recorder(Record(bundle, {"--pid", program.Number()}),
                                program);
    recorder.Tell(signal);
    EXPECT_EQ(recorder.Await(), kExitOk);
    EXPECT_THAT(program.Ask(), HasSubstr("the kernel's code"));
    EXPECT_EQ(program.Traces(), before);
    EXPECT_TRUE(std::filesystem::exists(bundle + "/start.pb"));
  }
}

// How often it is attached to.
class ThreadsStartTest : public HardwareStartTest,
                         public testing::WithParamInterface<int> {};

// Threads that wait, that are made, that a stop finds anywhere.
TEST_P(ThreadsStartTest, AProcessOfManyThreadsGoesOn) {
  const AnsweringProgram program("endless");
  const std::string before = program.Traces();
  for (int i = 0; i < GetParam(); ++i) {
    const std::string bundle = scratch_.Path(std::to_string(i));
    const auto run = Clew(Record(
        bundle, {"--pid", program.Number(), "--timeout", "1", "--json"}));
    EXPECT_EQ(run.exit_status, kExitOk) << run.text;
    EXPECT_TRUE(JsonIn(run.text)["start_state"].get<bool>());
    EXPECT_EQ(program.Ask(), "pong\n");
    EXPECT_EQ(program.Traces(), before);
    const auto start = bundle::ReadStart(bundle + "/start.pb");
    ASSERT_TRUE(start) << start.error().message;
    EXPECT_GE(start->others.size(), 4u);
  }
}

INSTANTIATE_TEST_SUITE_P(Once, ThreadsStartTest, testing::Values(1));

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, ThreadsStartTest, testing::Values(3));

TEST_F(HardwareStartTest, AProgramThatCannotBeExecutedEndsAsWithoutARecorder) {
  const std::string path = scratch_.Path("broken");
  std::ofstream(path) << "\x7f" << "ELF";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  const std::string bundle = RecordProgram({path}, kExitOk);
  EXPECT_FALSE(std::filesystem::exists(bundle + "/start.pb"));
  EXPECT_EQ(Info(bundle)["failure"]["exit_status"], 127);
}

TEST_F(HardwareStartTest, WhatTheLogLacksIsSaid) {
  const std::string bundle = RecordProgram({"/bin/true"}, kExitOk);
  EXPECT_THAT(Info(bundle)["unlogged_inputs"].dump(), HasSubstr("eBPF"));
}

}  // namespace
}  // namespace clew::e2e
