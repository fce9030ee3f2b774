#include "tests/recorder/tracer/comparison.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/user_registers.h"
#include "recorder/tracer/inject.h"
#include "recorder/tracer/path_reader.h"
#include "tests/recorder/tracer/answered_program.h"
#include "tests/recorder/tracer/insns_of.h"

namespace clew::tracer {
namespace {

constexpr uint64_t kTrapFlag = 0x100;
constexpr uint64_t kResumeFlag = 0x10000;

using Registers = std::array<uint64_t, kRecordedRegisters>;

// An instruction that ran, and the registers before it, where they are known.
struct Expected {
  uint64_t ip = 0;
  bool repeats = false;
  int64_t registers = -1;
};

struct Traced {
  std::vector<Expected> insns;
  std::vector<Registers> registers;
  uint64_t records = 0;
  TraceeStop end;
};

class Reader {
 public:
  Reader(SharedMemory& shared, Traced& traced)
      : shared_(shared),
        traced_(traced),
        index_(shared),
        path_(shared, index_, 0) {}

  // Takes what there is; false if it contradicts itself.
  bool Drain() {
    const Status status = SharedMemory::TakeBatches(
        shared_.slot(0), [this](const Batch& batch) -> Status {
          CLEW_RETURN_IF_ERROR(path_.Read(batch, sink_));
          if (batch.record_count != 0) {
            NoteRegisters(batch);
          }
          return Status();
        });
    EXPECT_TRUE(status.has_value()) << status.error().message;
    return status.has_value();
  }
  void ReadToEnd() {
    if (!path_.place().has_begun) {
      return;
    }
    const auto status =
        path_.ReadToCall(shared_.slot(0).state.last_call, sink_);
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }

 private:
  void NoteRegisters(const Batch& batch) {
    Registers registers;
    std::copy_n(reinterpret_cast<const uint64_t*>(&batch.records[kRegistersAt]),
                registers.size(), registers.begin());
    pending_ = static_cast<int64_t>(traced_.registers.size());
    traced_.registers.push_back(registers);
    ++traced_.records;
  }
  void Add(const recorder::CodeStretch& run) {
    for (const RanInsn& insn : InsnsOf(run)) {
      traced_.insns.push_back(
          {insn.ip, insn.repeats, std::exchange(pending_, -1)});
    }
  }

  SharedMemory& shared_;
  Traced& traced_;
  FragmentIndex index_;
  PathReader path_;
  int64_t pending_ = -1;
  PathReader::Sink sink_ = [this](const recorder::CodeStretch& run) {
    Add(run);
    return Status();
  };
};

void TraceAll(TracedProcess& process, SharedMemory& shared, Traced& traced) {
  Reader reader(shared, traced);
  const Tid thread = process.first_thread();
  Answers answers;
  int signal = 0;
  for (;;) {
    ASSERT_TRUE(process.Continue(thread, signal));
    for (;;) {
      const auto stop = process.Wait(thread, false);
      ASSERT_TRUE(stop.has_value());
      traced.end = *stop;
      ASSERT_TRUE(reader.Drain());
      if (stop->kind != TraceeStop::Kind::kRunning) {
        break;
      }
      sched_yield();
    }
    if (traced.end.has_ended()) {
      break;
    }
    signal = answers.Give(process, traced.end) ? 0 : traced.end.signal;
  }
  ASSERT_EQ(shared.FaultText(), "");
  reader.ReadToEnd();
}

std::string Difference(const Registers& traced, const Registers& stepped) {
  std::string text;
  for (size_t i = 0; i < traced.size(); ++i) {
    // The stepping's: RFLAGS, which SYSCALL has in R11, and which the frame of
    // a signal has some steps behind a POPF.
    uint64_t ignored = stepped[i] & ~traced[i] & kTrapFlag;
    if (i == kRecordedRegisters - 1) {
      ignored |= kResumeFlag;
    }
    if (((traced[i] ^ stepped[i]) & ~ignored) != 0) {
      text +=
          fmt::format(" {}: {:#x}, natively {:#x}", i, traced[i], stepped[i]);
    }
  }
  return text;
}

// Compares what the tracer saw with a program that is stepped through.
class SteppedProgram {
 public:
  SteppedProgram(TracedProcess& process, const Traced& traced)
      : process_(process), traced_(traced) {}

  // To its end, which is returned.
  TraceeStop Run() {
    const Tid thread = process_.first_thread();
    for (int signal = 0;;) {
      const auto native = process_.Registers(thread);
      if (!native) {
        ADD_FAILURE() << native.error().message;
        return {};
      }
      const bool begins_handler = signal != 0;
      EXPECT_TRUE(process_.SingleStep(thread, std::exchange(signal, 0)));
      const auto stop = process_.Wait(thread, true);
      EXPECT_TRUE(stop.has_value());
      if (begins_handler) {
        continue;  // it is at its first instruction
      }
      const bool ends = !stop || stop->has_ended();
      if (ends) {
        Compare(*native);
        EXPECT_EQ(at_ + 1, traced_.insns.size());
        return stop.value_or(TraceeStop());
      }
      // The kernel tells of the step once more behind an answered call.
      const bool is_behind_call = std::exchange(is_answered_, false);
      is_answered_ = answers_.Give(process_, *stop);
      signal = is_answered_ ? 0 : stop->signal;
      const auto next = process_.InsnPointer(thread);
      const bool stays = next && next->as_int() == native->rip;
      if (stays && (signal != 0 || !IsExpected(native->rip))) {
        continue;  // it raised a signal, or will where it is repeated
      }
      if (!Compare(*native)) {
        return {};
      }
      if (!stays || !(traced_.insns[at_].repeats || is_behind_call)) {
        ++at_;
      }
    }
  }

 private:
  bool IsExpected(uint64_t ip) const {
    return at_ < traced_.insns.size() && traced_.insns[at_].ip == ip;
  }
  // The registers before an instruction. False: it has seen enough.
  bool Compare(const user_regs_struct& native) {
    if (at_ == traced_.insns.size()) {
      ADD_FAILURE() << "the tracer saw " << at_ << " instructions, and there is"
                    << fmt::format(" one more at {:#x}", native.rip);
      return false;
    }
    const Expected& expected = traced_.insns[at_];
    if (native.rip != expected.ip) {
      ADD_FAILURE() << fmt::format(
          "instruction {} is at {:#x}, natively at {:#x}", at_, expected.ip,
          native.rip);
      return false;
    }
    const bool is_repeated = std::exchange(compared_, at_ + 1) == at_ + 1;
    if (expected.registers < 0 || is_repeated) {
      return true;
    }
    Registers stepped;
    for (size_t i = 0; i < kUserGprs.size(); ++i) {
      stepped[i] = native.*kUserGprs[i];
    }
    stepped.back() = native.eflags;
    const std::string difference = Difference(
        traced_.registers[static_cast<size_t>(expected.registers)], stepped);
    if (!difference.empty()) {
      ADD_FAILURE() << fmt::format("instruction {} at {:#x}:{}", at_,
                                   expected.ip, difference);
      return ++differences_ < 5;
    }
    return true;
  }

  TracedProcess& process_;
  const Traced& traced_;
  Answers answers_;
  size_t at_ = 0;
  size_t compared_ = 0;  // so many; an instruction may be repeated
  int differences_ = 0;
  bool is_answered_ = false;
};

void Compare(const std::vector<std::string>& command, uint32_t fragments_kept,
             ComparedRun& run) {
  auto shared = SharedMemory::Create();
  ASSERT_TRUE(shared.has_value()) << shared.error().message;
  shared->header().log_registers = 1;
  shared->header().fragments_kept = fragments_kept;
  Traced traced;
  {
    auto process = LaunchAnswered(command);
    ASSERT_TRUE(process.has_value());
    const auto injected = Inject(*process, *shared);
    ASSERT_TRUE(injected.has_value()) << injected.error().message;
    TraceAll(*process, *shared, traced);
  }
  run = {traced.insns.size(), traced.records, shared->fragments().size() - 1,
         shared->header().forgotten.load()};
  auto process = LaunchAnswered(command);
  ASSERT_TRUE(process.has_value());
  const TraceeStop end = SteppedProgram(*process, traced).Run();
  EXPECT_EQ(end.kind, traced.end.kind);
  EXPECT_EQ(end.exit_status, traced.end.exit_status);
}

}  // namespace

ComparedRun CompareWithSteps(const std::vector<std::string>& command,
                             uint32_t fragments_kept) {
  ComparedRun run;
  Compare(command, fragments_kept, run);
  return run;
}

}  // namespace clew::tracer
