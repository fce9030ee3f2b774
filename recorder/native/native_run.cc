#include "recorder/native/native_run.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "recorder/qemu/virtual_clock.h"

namespace clew::recorder {
namespace {

using State = NativeThread::State;
using x86::BranchClass;
using x86::InputInsn;

// How long to leave the CPU to a program whose threads all sleep.
constexpr useconds_t kIdleMicroseconds = 50;
constexpr uint64_t kSecondNs = 1'000'000'000;
// The leap of a thread without others, whose turns matter to nobody.
constexpr uint64_t kInsnsAlone = 1'000'000;

}  // namespace

NativeRun::NativeRun(NativeState& state)
    : state_(state),
      scheduler_(state.config.scheduler),
      versions_shown_(state.config.scheduler.cores, 0),
      waits_(state,
             [this](NativeThread& thread) { scheduler_.Ready(thread.slot); }),
      calls_(state, waits_,
             [this](NativeThread& thread) { scheduler_.Ready(thread.slot); }),
      signals_(state, calls_),
      ran_code_(state.code) {}

Result<std::optional<NativeEnd>> NativeRun::Run() {
  for (const auto& thread : state_.threads) {
    CLEW_RETURN_IF_ERROR(state_.OpenInputs(*thread));
    scheduler_.Ready(thread->slot);
  }
  while (!state_.end && !state_.replaced) {
    CLEW_RETURN_IF_ERROR(WakeSleepers(false));
    waits_.Release();
    const auto turn = scheduler_.Next(state_.now);
    if (TimeIsOver() || IsToldToEnd()) {
      state_.EndAs(FailureKind::kTimeLimit);
    } else if (turn) {
      NativeThread& thread = *state_.threads[turn->thread];
      Begin(thread, turn->core);
      CLEW_RETURN_IF_ERROR(RunTurn(thread, turn->insns));
    } else if (AllWaitForever()) {
      state_.EndAs(FailureKind::kHang);
    } else if (!waits_.SkipToDeadline()) {
      Idle();
    }
  }
  if (!state_.replaced) {
    CLEW_RETURN_IF_ERROR(state_.Settle());
    state_.tracer->Turn(Tid(0), state_.now);
  }
  return state_.end;
}

// If each thread is about to receive a signal, none can be asked to; what stays
// does no harm.
Status NativeRun::Leave(const std::vector<Attachment::Stopped>& threads) {
  const auto free = std::ranges::find(threads, 0, &Attachment::Stopped::signal);
  if (state_.leaps != nullptr && free != threads.end()) {
    (void)state_.leaps->Leave(free->tid);
  }
  return {};
}

// Not before something ran: nothing can be made of a bundle without a stream.
bool NativeRun::IsToldToEnd() const {
  return state_.CountInsns() > 0 && state_.is_over && state_.is_over();
}

// The program may have woken some of them, or not since they were looked at.
Status NativeRun::WakeSleepers(bool may_have_woken) {
  for (size_t i = 0; i < state_.threads.size(); ++i) {
    NativeThread& thread = *state_.threads[i];
    if (thread.state != State::kBlocked) {
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(
        after, may_have_woken ? calls_.Look(thread) : calls_.LookOnce(thread));
    if (after == After::kGoesOn) {
      thread.state = State::kWaiting;
      scheduler_.Ready(thread.slot);
    } else if (after == After::kGone) {
      NoteGone(thread);
    }
  }
  return {};
}

void NativeRun::NoteGone(NativeThread& thread) {
  thread.state = State::kGone;
  if (state_.leaps != nullptr) {
    state_.leaps->NoteEnd(thread.tid);
  }
}

void NativeRun::Begin(NativeThread& thread, uint32_t core) {
  handovers_ += last_ != &thread ? 1 : 0;
  last_ = &thread;
  state_.tracer->Turn(thread.tid, state_.now);
  thread.core = core;
  if (thread.state == State::kOnCore) {
    state_.EncoderOf(thread).AdvanceTime(TscTicks(state_.now));
    return;
  }
  thread.state = State::kOnCore;
  versions_shown_[core] = state_.code.latest_version();
  thread.enable_cause = EnableCause::kSwitchIn;
  state_.tracer->SwitchIn(core, thread.tid, state_.now);
}

Status NativeRun::RunTurn(NativeThread& thread, uint64_t insns) {
  const uint64_t deadline = state_.now + insns;
  while (state_.now < deadline) {
    const uint64_t leap = LeapOf(thread, deadline - state_.now);
    if (leap != 0) {
      CLEW_RETURN_IF_ERROR(RunLeap(thread, leap));
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(after, Step(thread));
    if (after == After::kEnded) {
      return {};
    }
    if (after == After::kHeld) {
      HoldBack(thread);
      return {};
    }
    if (after != After::kGoesOn) {
      thread.state = State::kBlocked;
      if (after == After::kGone) {
        NoteGone(thread);
      }
      state_.tracer->SwitchOut(thread.core, thread.tid, state_.now, false);
      scheduler_.Leave(thread.slot);
      return {};
    }
  }
  if (scheduler_.SliceOver(thread.slot, state_.now)) {
    Preempt(thread);
  }
  return {};
}

// How many instructions a thread runs at once, which has so many left of its
// turn; 0: it is stepped.
uint64_t NativeRun::LeapOf(const NativeThread& thread, uint64_t left) const {
  if (state_.leaps == nullptr || thread.signal != 0 || thread.is_at_step) {
    return 0;
  }
  return state_.HasOthers(thread) ? left
                                  : std::min(kInsnsAlone, InsnsUntilLimit());
}

void NativeRun::Preempt(NativeThread& thread) {
  if (!thread.in_kernel) {
    state_.LeaveUserMode(thread);
  }
  state_.tracer->SwitchOut(thread.core, thread.tid, state_.now, true);
  thread.state = State::kWaiting;
  scheduler_.Preempt(thread.slot);
}

// As if it had been preempted, but it cannot go on.
void NativeRun::HoldBack(NativeThread& thread) {
  if (!thread.in_kernel) {
    state_.LeaveUserMode(thread);
  }
  state_.tracer->SwitchOut(thread.core, thread.tid, state_.now, true);
  thread.state = State::kHeld;
  thread.is_at_step = true;
  scheduler_.Leave(thread.slot);
}

// Real time counts only while no thread can run.
void NativeRun::Idle() {
  const uint64_t before = HostNs();
  usleep(kIdleMicroseconds);
  const uint64_t passed = HostNs() - before;
  idle_ns_ += passed;
  if (state_.clock != nullptr) {
    state_.clock->Pass(passed);
  }
}

bool NativeRun::TimeIsOver() const { return InsnsUntilLimit() == 0; }

// Of the time limit; 0: it is over.
uint64_t NativeRun::InsnsUntilLimit() const {
  const uint64_t limit_ns = state_.config.timeout_s * kSecondNs;
  if (limit_ns == 0) {
    return UINT64_MAX;
  }
  const uint64_t passed_ns =
      state_.CountInsns() * VirtualClock::kNsPerTick + idle_ns_;
  return (limit_ns - std::min(passed_ns, limit_ns) + VirtualClock::kNsPerTick -
          1) /
         VirtualClock::kNsPerTick;
}

bool NativeRun::AllWaitForever() const {
  return !state_.uses_timers &&
         std::ranges::all_of(state_.threads, [this](const auto& thread) {
           return WaitsForever(*thread, state_.process.process());
         });
}

void NativeRun::EnterUserMode(NativeThread& thread) {
  if (thread.in_kernel) {
    state_.EncoderOf(thread).Enable(TraceeAddr(thread.ip), thread.enable_cause);
    thread.in_kernel = false;
    thread.enable_cause = EnableCause::kKernelReturn;
  }
}

Status NativeRun::RunLeap(NativeThread& thread, uint64_t insns) {
  CLEW_ASSIGN_OR_RETURN(
      leap,
      state_.leaps->Run(thread.tid, insns, [&](const CodeStretch& stretch) {
        return Follow(thread, stretch);
      }));
  RetireFollowed(thread, leap.ip);
  thread.is_at_step = leap.is_at_step;
  thread.signal = leap.signal;
  if (thread.signal != 0 && !thread.in_kernel) {
    state_.LeaveUserMode(thread);
  }
  return {};
}

void NativeRun::RetireFollowed(NativeThread& thread, uint64_t next_ip) {
  if (const auto insn = std::exchange(followed_, std::nullopt)) {
    Retire(thread, insn->branch_class, insn->fall_through, next_ip);
  }
}

// What a leap ran.
Status NativeRun::Follow(NativeThread& thread, const CodeStretch& stretch) {
  RetireFollowed(thread, stretch.start);
  CLEW_ASSIGN_OR_RETURN(ran, ran_code_.Find(stretch, state_.now));
  if (stretch.code.empty()) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(ShowVersion(thread, ran->version));
  EnterUserMode(thread);
  CoreEncoder& encoder = state_.EncoderOf(thread);
  const auto [insns, last] = EncodeStretch(
      stretch, *ran, encoder, [&](const RanStretch::Branch& branch) {
        encoder.AdvanceTime(TscTicks(state_.now + branch.insns));
      });
  if (insns != 0) {
    state_.now += insns - 1;
    followed_ = last;
  }
  return {};
}

Result<After> NativeRun::Step(NativeThread& thread) {
  thread.is_at_step = false;
  if (state_.leaps != nullptr) {
    CLEW_RETURN_IF_ERROR(state_.leaps->Settle(thread.tid));
  }
  if (thread.signal != 0) {
    return signals_.Deliver(thread);
  }
  const NativeInsn insn = state_.code.At(thread.ip, state_.memory, state_.now);
  std::optional<ComingCall> call;
  if (insn.is_syscall) {
    CLEW_ASSIGN_OR_RETURN(coming, calls_.Coming(thread));
    if (!coming) {
      return After::kHeld;
    }
    call = *coming;
  }
  CLEW_RETURN_IF_ERROR(ShowVersion(thread, insn.version));
  if (state_.before_insn) {
    CLEW_RETURN_IF_ERROR(
        state_.before_insn(state_.process, thread.tid, state_.now));
  }
  EnterUserMode(thread);
  if (call) {
    CLEW_ASSIGN_OR_RETURN(after, calls_.Step(thread, insn, *call));
    // A signal that comes behind it may depend on a mask that it had for its
    // time.
    thread.is_at_step = true;
    if (!state_.replaced) {
      CLEW_RETURN_IF_ERROR(WakeSleepers(true));
    }
    return after;
  }
  CLEW_ASSIGN_OR_RETURN(emulated, Emulate(thread, insn));
  if (emulated) {
    return After::kGoesOn;
  }
  return insn.chooses_components ? StepWithShownComponents(thread, insn)
                                 : StepNear(thread, insn);
}

// Code that replaced other code: the trace tells the time before a core runs it
// first.
Status NativeRun::ShowVersion(NativeThread& thread, uint64_t version) {
  if (version <= versions_shown_[thread.core]) {
    return {};
  }
  versions_shown_[thread.core] = version;
  if (!state_.config.encoder.tsc) {
    return Unsupported(
        "the program replaced code at {:#x}: without timing packets nothing "
        "tells from when on; record without '--timing none'",
        thread.ip);
  }
  if (!thread.in_kernel) {
    state_.LeaveUserMode(thread);
  }
  if (thread.enable_cause == EnableCause::kKernelReturn) {
    thread.enable_cause = EnableCause::kTimed;
  }
  return {};
}

// CPUID and XGETBV, which show another CPU than the host's, and RDTSC and
// RDTSCP, which read the time of the recording: so a seed says what they read.
Result<bool> NativeRun::Emulate(NativeThread& thread, const NativeInsn& insn) {
  if (insn.input == InputInsn::kNone || insn.input == InputInsn::kOther ||
      state_.shows_host_cpu) {
    return false;
  }
  CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread.tid));
  if (insn.input == InputInsn::kCpuid) {
    const CpuidResult told =
        state_.shown_cpu.cpuid.Find(static_cast<uint32_t>(registers.rax),
                                    static_cast<uint32_t>(registers.rcx));
    registers.rax = told.eax;
    registers.rbx = told.ebx;
    registers.rcx = told.ecx;
    registers.rdx = told.edx;
  } else if (insn.input == InputInsn::kRdtsc ||
             insn.input == InputInsn::kRdtscp) {
    registers.rax = state_.now & UINT32_MAX;
    registers.rdx = state_.now >> 32;
    if (insn.input == InputInsn::kRdtscp) {
      registers.rcx = thread.core;
    }
  } else if (state_.shown_cpu.xcr0 != 0 &&
             static_cast<uint32_t>(registers.rcx) == 0) {
    registers.rax = state_.shown_cpu.xcr0;
    registers.rdx = 0;
  } else {
    return false;
  }
  registers.rip = insn.fall_through.as_int();
  CLEW_RETURN_IF_ERROR(state_.process.SetRegisters(thread.tid, registers));
  RecordInsn(thread, registers);
  Retire(thread, insn.branch_class, insn.fall_through, registers.rip);
  return true;
}

// The host may have more state components than are shown: the program has no
// room for them.
Result<After> NativeRun::StepWithShownComponents(NativeThread& thread,
                                                 const NativeInsn& insn) {
  CLEW_RETURN_IF_ERROR(LetSseBeInUse(thread));
  CLEW_ASSIGN_OR_RETURN(before, state_.process.Registers(thread.tid));
  user_regs_struct shown = before;
  shown.rax &= state_.shown_cpu.xcr0;
  shown.rdx = 0;
  CLEW_RETURN_IF_ERROR(state_.process.SetRegisters(thread.tid, shown));
  CLEW_ASSIGN_OR_RETURN(step, StepNear(thread, insn));
  CLEW_ASSIGN_OR_RETURN(after, state_.process.Registers(thread.tid));
  after.rax = before.rax;
  after.rdx = before.rdx;
  CLEW_RETURN_IF_ERROR(state_.process.SetRegisters(thread.tid, after));
  return step;
}

// Whether a CPU by Intel says that SSE is in use, while its registers have
// their initial values, depends on how often the kernel has loaded them since:
// behind the entry of a signal's handler it is not, and a moment later it is.
// Loaded so it is. Source: Intel SDM vol. 1, "XSAVE-Managed State" (XINUSE).
Status NativeRun::LetSseBeInUse(const NativeThread& thread) {
  constexpr uint32_t kGenu = 0x756e6547;  // EBX of "GenuineIntel"
  constexpr size_t kStateBvAt = 512;
  constexpr std::byte kSse{2};
  if (state_.shown_cpu.cpuid.Find(0, 0).ebx != kGenu) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(extended, state_.process.ExtendedState(thread.tid));
  if (extended.size() <= kStateBvAt) {
    return {};
  }
  extended[kStateBvAt] |= kSse;
  return state_.process.SetExtendedState(thread.tid, extended);
}

void NativeRun::RecordInsn(NativeThread& thread,
                           const user_regs_struct& registers) {
  thread.AddInput(InsnInput{.ip = TraceeAddr(thread.ip),
                            .rax = registers.rax,
                            .rbx = registers.rbx,
                            .rcx = registers.rcx,
                            .rdx = registers.rdx,
                            .rflags = registers.eflags & ~kTrapFlag});
}

Result<After> NativeRun::StepNear(NativeThread& thread,
                                  const NativeInsn& insn) {
  const uint64_t ip = thread.ip;
  for (;;) {
    CLEW_RETURN_IF_ERROR(state_.process.SingleStep(thread.tid, 0));
    CLEW_ASSIGN_OR_RETURN(stop, state_.process.Wait(thread.tid, true));
    if (stop.kind != TraceeStop::Kind::kTrap &&
        stop.kind != TraceeStop::Kind::kSignal) {
      return Unsupported("the program was ended from outside");
    }
    CLEW_ASSIGN_OR_RETURN(next, state_.process.InsnPointer(thread.tid));
    thread.signal = stop.signal;
    const bool repeats =
        insn.branch_class == BranchClass::kRepString && next.as_int() == ip;
    if (repeats && thread.signal == 0) {
      continue;  // the trap flag stops at each iteration
    }
    const bool retired = thread.signal == 0 || next.as_int() != ip;
    if (retired) {
      CLEW_RETURN_IF_ERROR(HideTrapFlag(thread, insn));
      if (insn.input != InputInsn::kNone) {
        CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread.tid));
        RecordInsn(thread, registers);
      }
      Retire(thread, insn.branch_class, insn.fall_through, next.as_int());
    }
    if (thread.signal != 0 && !thread.in_kernel) {
      state_.LeaveUserMode(thread);
    }
    return After::kGoesOn;
  }
}

// Time comes before the branch: see "Time comes first" in
// docs/design/recorder.md.
void NativeRun::Retire(NativeThread& thread, BranchClass branch_class,
                       TraceeAddr fall_through, uint64_t next_ip) {
  CoreEncoder& encoder = state_.EncoderOf(thread);
  encoder.AdvanceTime(TscTicks(++state_.now));
  encoder.Branch(branch_class, fall_through, TraceeAddr(next_ip));
  if (branch_class == BranchClass::kFar) {  // INT3 and its like
    encoder.FarTransfer();
    thread.in_kernel = true;
  }
  thread.ip = next_ip;
}

// PUSHF pushes the flag that makes the CPU trap after each instruction.
Status NativeRun::HideTrapFlag(const NativeThread& thread,
                               const NativeInsn& insn) {
  if (insn.pushes_flags_bytes == 0) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread.tid));
  const auto flags = state_.memory.Load<uint16_t>(registers.rsp);
  const auto shown = static_cast<uint16_t>(flags.value_or(0) & ~kTrapFlag);
  if (!flags || !state_.memory.Write(registers.rsp, &shown, sizeof(shown))) {
    return Unsupported("PUSHF at {:#x}: its stack cannot be written",
                       thread.ip);
  }
  return {};
}

}  // namespace clew::recorder
