#include "recorder/tracer/leaps.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/user_registers.h"
#include "recorder/native/native_state.h"
#include "recorder/tracer/changed_code.h"
#include "recorder/tracer/image.h"
#include "recorder/tracer/inject.h"
#include "recorder/tracer/path_reader.h"
#include "recorder/tracer/places.h"
#include "recorder/tracer/raised_signals.h"
#include "recorder/tracer/shared_memory.h"

// A leap: the registers of a thread are brought to its state, and the thread
// goes on in the runtime, up to a breakpoint there. They stay there for the
// next leap, or are brought back before somebody looks (Settle): so whoever
// steps a program finds it as if it had stepped all the time.

namespace clew::tracer {
namespace {

using recorder::kTrapFlag;
using recorder::Leaps;
using recorder::SyscallCall;

// A leap of more is not counted, but for its end: it is as long as its log, of
// which a record has fewer instructions than this in nearly all code.
constexpr uint64_t kCountedInsns = 4096;
constexpr uint64_t kInsnsPerRecord = 32;
// As many as leave room in a queue.
constexpr uint64_t kBatchesOfLeap = kBatches / 2;

// One that the runtime drops code for.
bool MayChangeCode(const SyscallCall& call) {
  return std::ranges::any_of(
      ChangedBy(call.number, call.args),
      [](const ChangedRange& range) { return range.bytes != 0; });
}

// A signal that came while a thread was in the runtime: it waits for the end of
// the leap.
struct HeldSignal {
  siginfo_t info = {};
  uint64_t mask = 0;  // the thread's; all are blocked meanwhile
};

class TracedLeaps final : public Leaps {
 public:
  TracedLeaps(TracedProcess& process, SharedMemory shared)
      : process_(process), shared_(std::move(shared)), index_(shared_) {}

  Status Begin() {
    const Tid first = process_.first_thread();
    shared_.header().in_leaps = 1;
    CLEW_ASSIGN_OR_RETURN(program, process_.Registers(first));
    CLEW_RETURN_IF_ERROR(Inject(process_, shared_));
    End end;
    CLEW_RETURN_IF_ERROR(AwaitEnd(first, 0, end));
    CLEW_RETURN_IF_ERROR(NoteThread(first, 0));
    CLEW_RETURN_IF_ERROR(process_.SetRegisters(first, program));
    return end.held ? SendAgain(first, *end.held) : Status();
  }

  Result<Leap> Run(Tid tid, uint64_t insns, const Sink& sink) override;
  Status Settle(Tid thread) override;
  void NoteCall(const SyscallCall& call) override {
    if (MayChangeCode(call)) {
      calls_.push_back(call);
    }
  }
  void NoteEnd(Tid thread) override {
    const auto ended = threads_.find(thread);
    if (ended != threads_.end()) {
      free_.push_back(ended->second.place);
      threads_.erase(ended);
    }
  }
  Status Leave(Tid thread) override {
    return TakeOut(process_, thread, shared_);
  }
  std::vector<MemoryRange> Memory() const override {
    return MemoryOf(shared_.header().places);
  }

 private:
  // What a thread has in the program's memory.
  struct InProgram {
    uint32_t slot = 0;
    uint64_t state = 0;  // its address there
  };
  struct Thread {
    InProgram place;
    PathReader reader;
    // Its registers are in its state, and this is its GS base.
    bool is_inside = false;
    uint64_t gs_base = 0;
  };
  // What came until a thread was at the end of what it was to do.
  struct End {
    // Where an instruction raised a signal, and what it had in its registers.
    std::optional<user_regs_struct> interrupted = {};
    std::optional<HeldSignal> held = {};
  };

  uint64_t AddrOf(uint64_t in_image) const {
    return shared_.header().places.image + in_image;
  }
  ThreadState& StateOf(const InProgram& place) {
    return shared_.slot(place.slot).state;
  }
  void AddThread(Tid thread, const InProgram& place) {
    threads_.erase(thread);
    threads_.emplace(thread, Thread{place, {shared_, index_, 0}, false, 0});
  }
  Status NoteThread(Tid thread, uint32_t slot);
  Result<Thread*> FindThread(Tid thread, End& end);
  Status Adopt(Tid thread, End& end);
  Status Enter(Tid thread, const InProgram& place, user_regs_struct registers,
               uint64_t in_image);
  Status AwaitEnd(Tid thread, uint32_t slot, End& end);
  Status RunToEnd(Tid thread, uint32_t slot, End& end);
  Result<Thread*> GoInside(Tid tid, End& end);
  Status GoOutside(Tid tid, Thread& thread, user_regs_struct now);
  Status Hold(Tid thread, const siginfo_t& info, End& end);
  Status DropChanged(Tid thread, const Thread& its,
                     const user_regs_struct& program, End& end);
  Status SendAgain(Tid thread, const HeldSignal& held);
  Result<int> Release(Tid thread, const HeldSignal& held);
  Status ReadLog(Thread& thread, const Sink& sink);

  TracedProcess& process_;
  SharedMemory shared_;
  FragmentIndex index_;
  std::map<Tid, Thread> threads_;
  std::vector<InProgram> free_;     // of threads that have ended
  std::vector<SyscallCall> calls_;  // that may have changed code
};

Status TracedLeaps::NoteThread(Tid thread, uint32_t slot) {
  CLEW_ASSIGN_OR_RETURN(registers, process_.Registers(thread));
  AddThread(thread, {slot, registers.gs_base});
  return {};
}

// Gives a thread what it needs in the program's memory.
Status TracedLeaps::Adopt(Tid thread, End& end) {
  CLEW_ASSIGN_OR_RETURN(slot, Join(process_, thread, shared_));
  CLEW_RETURN_IF_ERROR(AwaitEnd(thread, slot, end));
  return NoteThread(thread, slot);
}

Result<TracedLeaps::Thread*> TracedLeaps::FindThread(Tid thread, End& end) {
  const auto found = threads_.find(thread);
  if (found != threads_.end()) {
    return &found->second;
  }
  if (free_.empty()) {
    CLEW_RETURN_IF_ERROR(Adopt(thread, end));
  } else {
    AddThread(thread, free_.back());
    free_.pop_back();
  }
  return &threads_.at(thread);
}

Status TracedLeaps::Enter(Tid thread, const InProgram& place,
                          user_regs_struct registers, uint64_t in_image) {
  registers.rip = AddrOf(in_image);
  registers.eflags = kClearFlags;
  registers.gs_base = place.state;
  registers.orig_rax = UINT64_MAX;
  return process_.SetRegisters(thread, registers);
}

// Blocks all but what instructions raise, which blocked would end the program.
Status TracedLeaps::Hold(Tid thread, const siginfo_t& info, End& end) {
  CLEW_ASSIGN_OR_RETURN(mask, process_.SignalMask(thread));
  end.held = HeldSignal{info, mask};
  return process_.SetSignalMask(thread, ~kRaisedSignals | mask);
}

// What the runtime asks of the kernel is not the program's doing.
Status TracedLeaps::AwaitEnd(Tid thread, uint32_t slot, End& end) {
  CLEW_RETURN_IF_ERROR(process_.SetFilters(thread, false));
  CLEW_RETURN_IF_ERROR(RunToEnd(thread, slot, end));
  return process_.SetFilters(thread, true);
}

Status TracedLeaps::RunToEnd(Tid thread, uint32_t slot, End& end) {
  uint64_t& has_ended = shared_.slot(slot).state.leap.has_ended;
  has_ended = 0;
  for (;;) {
    CLEW_RETURN_IF_ERROR(process_.Continue(thread, 0));
    CLEW_ASSIGN_OR_RETURN(stop, process_.Wait(thread, true));
    if (stop.has_ended()) {
      const std::string fault = shared_.FaultText();
      return Unsupported(
          "{}", fault.empty() ? "the program was ended from outside" : fault);
    }
    const bool is_trap =
        stop.kind == TraceeStop::Kind::kTrap || stop.signal == SIGTRAP;
    if (is_trap && has_ended != 0) {
      return {};
    }
    CLEW_ASSIGN_OR_RETURN(registers, process_.Registers(thread));
    if (stop.kind == TraceeStop::Kind::kTrap) {
      return Unsupported("the program stopped at {:#x} in the tracer",
                         registers.rip);
    }
    CLEW_ASSIGN_OR_RETURN(info, process_.SignalInfo(thread));
    if (!IsRaised(info.si_signo, info.si_code)) {
      CLEW_RETURN_IF_ERROR(Hold(thread, info, end));
      continue;
    }
    const bool in_image = registers.rip - AddrOf(0) < RuntimeImage().size();
    if (in_image || end.interrupted) {
      return Unsupported("the tracer failed in the program, at {:#x}",
                         registers.rip);
    }
    // It raises it once more when it is stepped over.
    end.interrupted = registers;
    user_regs_struct entry = registers;
    entry.rdi = registers.rip;
    entry.rip = AddrOf(kInterruptedAt);
    entry.eflags = kClearFlags;
    CLEW_RETURN_IF_ERROR(process_.SetRegisters(thread, entry));
  }
}

// The runtime forgets the code that calls may have changed.
Status TracedLeaps::DropChanged(Tid thread, const Thread& its,
                                const user_regs_struct& program, End& end) {
  for (const SyscallCall& call : std::exchange(calls_, {})) {
    ThreadState& state = StateOf(its.place);
    state.gpr[0] = static_cast<uint64_t>(call.number);
    state.gpr[7] = call.args[0];
    state.gpr[6] = call.args[1];
    state.gpr[2] = call.args[2];
    state.gpr[10] = call.args[3];
    state.gpr[8] = call.args[4];
    state.gpr[9] = call.args[5];
    CLEW_RETURN_IF_ERROR(Enter(thread, its.place, program, kChangedAt));
    CLEW_RETURN_IF_ERROR(AwaitEnd(thread, its.place.slot, end));
  }
  return {};
}

// It comes when the thread goes on.
Status TracedLeaps::SendAgain(Tid thread, const HeldSignal& held) {
  CLEW_RETURN_IF_ERROR(process_.SetSignalMask(thread, held.mask));
  // It may be of another process (vfork).
  if (syscall(SYS_tkill, thread.as_int(), held.info.si_signo) != 0) {
    return SystemError(errno, "cannot send a signal on");
  }
  return {};
}

// The thread is about to receive it, as it came.
Result<int> TracedLeaps::Release(Tid thread, const HeldSignal& held) {
  CLEW_RETURN_IF_ERROR(SendAgain(thread, held));
  CLEW_RETURN_IF_ERROR(process_.SingleStep(thread, 0));
  CLEW_ASSIGN_OR_RETURN(stop, process_.Wait(thread, true));
  if (stop.kind != TraceeStop::Kind::kSignal) {
    return Unsupported("the program was ended from outside");
  }
  if (stop.signal == held.info.si_signo) {
    CLEW_RETURN_IF_ERROR(process_.SetSignalInfo(thread, held.info));
  }
  return stop.signal;
}

Status TracedLeaps::ReadLog(Thread& thread, const Sink& sink) {
  return SharedMemory::TakeBatches(
      shared_.slot(thread.place.slot),
      [&](const Batch& batch) { return thread.reader.Read(batch, sink); });
}

// Lets a thread be about to run in the runtime, with the registers that it has.
Result<TracedLeaps::Thread*> TracedLeaps::GoInside(Tid tid, End& end) {
  CLEW_ASSIGN_OR_RETURN(program, process_.Registers(tid));
  CLEW_ASSIGN_OR_RETURN(thread, FindThread(tid, end));
  CLEW_RETURN_IF_ERROR(DropChanged(tid, *thread, program, end));
  ThreadState& state = StateOf(thread->place);
  for (size_t i = 0; i < kUserGprs.size(); ++i) {
    state.gpr[i] = program.*kUserGprs[i];
  }
  state.rflags = program.eflags & ~kTrapFlag;
  state.signals.boundary = program.rip;
  CLEW_RETURN_IF_ERROR(Enter(tid, thread->place, program, kLeapAt));
  thread->gs_base = program.gs_base;
  thread->is_inside = true;
  return thread;
}

// `now`, but for what it does not have of the program's, is what the thread
// has.
Status TracedLeaps::GoOutside(Tid tid, Thread& thread, user_regs_struct now) {
  now.eflags &= ~kTrapFlag;
  now.rip = StateOf(thread.place).signals.boundary;
  now.gs_base = thread.gs_base;
  now.orig_rax = UINT64_MAX;
  thread.is_inside = false;
  return process_.SetRegisters(tid, now);
}

Status TracedLeaps::Settle(Tid tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end() || !found->second.is_inside) {
    return {};
  }
  Thread& thread = found->second;
  const ThreadState& state = StateOf(thread.place);
  CLEW_ASSIGN_OR_RETURN(now, process_.Registers(tid));
  for (size_t i = 0; i < kUserGprs.size(); ++i) {
    now.*kUserGprs[i] = state.gpr[i];
  }
  now.eflags = state.rflags;
  return GoOutside(tid, thread, now);
}

Result<Leaps::Leap> TracedLeaps::Run(Tid tid, uint64_t insns,
                                     const Sink& sink) {
  End end;
  if (!calls_.empty()) {
    CLEW_RETURN_IF_ERROR(Settle(tid));
  }
  const auto known = threads_.find(tid);
  Thread* thread = known == threads_.end() ? nullptr : &known->second;
  if (thread == nullptr || !thread->is_inside) {
    CLEW_ASSIGN_OR_RETURN(entered, GoInside(tid, end));
    thread = entered;
  }
  ThreadState& state = StateOf(thread->place);
  state.leap.is_counted = insns <= kCountedInsns ? 1 : 0;
  state.leap.insns_left = insns;
  const uint64_t records = insns / kInsnsPerRecord;
  state.log_records = std::clamp<uint64_t>(records, 1, kBatchRecords);
  state.leap.batches_left =
      std::clamp<uint64_t>(records / kBatchRecords, 1, kBatchesOfLeap);
  CLEW_RETURN_IF_ERROR(AwaitEnd(tid, thread->place.slot, end));
  CLEW_RETURN_IF_ERROR(ReadLog(*thread, sink));
  if (end.interrupted) {
    user_regs_struct now = *end.interrupted;
    if (state.scratch < kUserGprs.size()) {
      now.*kUserGprs[state.scratch] = state.gpr[state.scratch];
    }
    CLEW_RETURN_IF_ERROR(GoOutside(tid, *thread, now));
  }
  Leap leap{.ip = state.signals.boundary,
            .is_at_step = state.leap.is_at_step != 0};
  if (end.held) {
    CLEW_RETURN_IF_ERROR(Settle(tid));
    CLEW_ASSIGN_OR_RETURN(signal, Release(tid, *end.held));
    leap.signal = signal;
  }
  return leap;
}

}  // namespace

Result<std::unique_ptr<recorder::Leaps>> MakeLeaps(TracedProcess& process,
                                                   uint32_t fragments_kept) {
  CLEW_ASSIGN_OR_RETURN(shared, SharedMemory::Create());
  shared.header().fragments_kept = fragments_kept;
  auto leaps = std::make_unique<TracedLeaps>(process, std::move(shared));
  CLEW_RETURN_IF_ERROR(leaps->Begin());
  return leaps;
}

}  // namespace clew::tracer
