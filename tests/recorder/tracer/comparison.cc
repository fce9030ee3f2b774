#include "tests/recorder/tracer/comparison.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/user_registers.h"
#include "common/x86/branch.h"
#include "recorder/tracer/image.h"
#include "recorder/tracer/inject.h"
#include "recorder/tracer/path_reader.h"
#include "tests/recorder/tracer/answered_program.h"

namespace clew::tracer {
namespace {

constexpr uint64_t kTrapFlag = 0x100;
constexpr uint64_t kResumeFlag = 0x10000;
constexpr size_t kR11 = 11;

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
        path_(shared, index_) {}

  // Takes what there is; false if it contradicts itself.
  bool Drain() {
    ThreadSlot& slot = shared_.slot(0);
    const uint32_t written = slot.batches_written.load();
    const uint32_t first = slot.batches_read.load();
    for (uint32_t read = first; read != written; ++read) {
      const Batch& batch = slot.batches[read % kBatches];
      const auto status = path_.Read(batch.records[0], sink_);
      if (!status) {
        ADD_FAILURE() << status.error().message;
        return false;
      }
      Registers registers;
      std::copy_n(
          reinterpret_cast<const uint64_t*>(&batch.records[kRegistersAt]),
          registers.size(), registers.begin());
      pending_ = static_cast<int64_t>(traced_.registers.size());
      traced_.registers.push_back(registers);
      ++traced_.records;
    }
    if (written != first) {
      SharedMemory::FreeBatches(slot, written);
    }
    return true;
  }
  void ReadToEnd() {
    const auto status =
        path_.ReadToCall(shared_.slot(0).state.last_call, sink_);
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }

 private:
  void Add(const StraightRun& run) {
    for (size_t at = 0; at < run.code.size();) {
      const auto rest = run.code.subspan(at);
      const x86::Layout layout = x86::ScanLayout(rest);
      ASSERT_EQ(layout.status, x86::LayoutStatus::kWhole);
      const x86::Branch branch =
          x86::ClassifyBranch(layout.opcode, rest.first(layout.length));
      traced_.insns.push_back(
          {run.start + at, branch.branch_class == x86::BranchClass::kRepString,
           std::exchange(pending_, -1)});
      at += layout.length;
    }
  }

  SharedMemory& shared_;
  Traced& traced_;
  FragmentIndex index_;
  PathReader path_;
  int64_t pending_ = -1;
  PathReader::Sink sink_ = [this](const StraightRun& run) { Add(run); };
};

void TraceAll(TracedProcess& process, SharedMemory& shared, Traced& traced) {
  Reader reader(shared, traced);
  const Tid thread = process.first_thread();
  const uint64_t image = shared.header().places.image;
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
    if (traced.end.kind == TraceeStop::Kind::kExited ||
        traced.end.kind == TraceeStop::Kind::kKilled) {
      break;
    }
    signal =
        answers.Give(process, traced.end, image, image + RuntimeImage().size())
            ? 0
            : traced.end.signal;
  }
  ASSERT_EQ(shared.FaultText(), "");
  reader.ReadToEnd();
}

std::string Difference(const Registers& traced, const Registers& stepped) {
  std::string text;
  for (size_t i = 0; i < traced.size(); ++i) {
    uint64_t ignored = 0;
    if (i == kR11) {
      ignored = kTrapFlag;  // RFLAGS of a stepped SYSCALL
    } else if (i == kRecordedRegisters - 1) {
      ignored = kTrapFlag | kResumeFlag;
    }
    if (((traced[i] ^ stepped[i]) & ~ignored) != 0) {
      text +=
          fmt::format(" {}: {:#x}, natively {:#x}", i, traced[i], stepped[i]);
    }
  }
  return text;
}

// Steps through the program, and compares with what the tracer saw. Returns its
// end.
TraceeStop StepThrough(TracedProcess& process, const Traced& traced) {
  const Tid thread = process.first_thread();
  Answers answers;
  int signal = 0;
  int differences = 0;
  bool is_answered = false;
  for (size_t at = 0;;) {
    const auto native = process.Registers(thread);
    if (!native) {
      ADD_FAILURE() << native.error().message;
      return {};
    }
    if (at == traced.insns.size()) {
      ADD_FAILURE() << "the tracer saw " << at << " instructions, and there is"
                    << fmt::format(" one more at {:#x}", native->rip);
      return {};
    }
    const Expected& expected = traced.insns[at];
    if (native->rip != expected.ip) {
      ADD_FAILURE() << fmt::format(
          "instruction {} is at {:#x}, natively at {:#x}", at, expected.ip,
          native->rip);
      return {};
    }
    if (expected.registers >= 0) {
      Registers stepped;
      for (size_t i = 0; i < kUserGprs.size(); ++i) {
        stepped[i] = *native.*kUserGprs[i];
      }
      stepped.back() = native->eflags;
      const std::string difference = Difference(
          traced.registers[static_cast<size_t>(expected.registers)], stepped);
      if (!difference.empty()) {
        ADD_FAILURE() << fmt::format("instruction {} at {:#x}:{}", at,
                                     expected.ip, difference);
        if (++differences == 5) {
          return {};
        }
      }
    }
    EXPECT_TRUE(process.SingleStep(thread, signal));
    const auto stop = process.Wait(thread, true);
    EXPECT_TRUE(stop.has_value());
    if (!stop || stop->kind == TraceeStop::Kind::kExited ||
        stop->kind == TraceeStop::Kind::kKilled) {
      EXPECT_EQ(at + 1, traced.insns.size());
      return stop.value_or(TraceeStop());
    }
    // The kernel tells of the step once more behind an answered call.
    const bool is_behind_call = std::exchange(is_answered, false);
    is_answered = answers.Give(process, *stop);
    signal = is_answered ? 0 : stop->signal;
    const auto next = process.InsnPointer(thread);
    if (!next || next->as_int() != expected.ip ||
        !(expected.repeats || is_behind_call)) {
      ++at;
    }
  }
}

void Compare(const std::vector<std::string>& command, ComparedRun& run) {
  auto shared = SharedMemory::Create();
  ASSERT_TRUE(shared.has_value()) << shared.error().message;
  shared->header().log_registers = 1;
  Traced traced;
  {
    auto process = LaunchAnswered(command);
    ASSERT_TRUE(process.has_value());
    const auto injected = Inject(*process, *shared);
    ASSERT_TRUE(injected.has_value()) << injected.error().message;
    TraceAll(*process, *shared, traced);
  }
  run = {traced.insns.size(), traced.records, shared->fragments().size() - 1};
  auto process = LaunchAnswered(command);
  ASSERT_TRUE(process.has_value());
  const TraceeStop end = StepThrough(*process, traced);
  EXPECT_EQ(end.kind, traced.end.kind);
  EXPECT_EQ(end.exit_status, traced.end.exit_status);
}

}  // namespace

ComparedRun CompareWithSteps(const std::vector<std::string>& command) {
  ComparedRun run;
  Compare(command, run);
  return run;
}

}  // namespace clew::tracer
