#include "recorder/native/native_calls.h"

#include <asm/unistd_64.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "common/linux/failure_report.h"
#include "common/linux/request_table.h"
#include "common/linux/syscall_result.h"
#include "common/linux/syscall_table.h"
#include "recorder/native/passed_signals.h"
#include "recorder/native/sharing_process.h"
#include "recorder/native/tracee/process_stat.h"
#include "recorder/native/tracee/robust_list.h"
#include "recorder/native/tracee/signal_disposition.h"

namespace clew::recorder {
namespace {

// Of /proc/pid/stat, also of a process that has ended: it runs the program of
// its parent (include/linux/sched.h, PF_FORKNOEXEC).
constexpr uint64_t kForkedAndNotExecuted = 0x40;

bool MakesVfork(const SyscallCall& call) {
  return call.number == __NR_vfork ||
         (call.number == __NR_clone && (call.args[0] & CLONE_VFORK) != 0);
}

bool Executes(const SyscallCall& call) {
  return call.number == __NR_execve || call.number == __NR_execveat;
}

// Libraries try the others and do without; a number without a name is not in
// the kernel either.
bool IsMissed(const SyscallRow& row) {
  return row.name != nullptr && row.effects != KnownEffects::kNativeOnly;
}

// What is handed to the kernel in the place of vfork.
user_regs_struct WithOwnMemory(user_regs_struct registers) {
  if (registers.rax == __NR_vfork) {
    registers.rax = __NR_clone;
    registers.rdi = CLONE_VFORK | SIGCHLD;
    registers.rsi = 0;
    registers.rdx = 0;
    registers.r10 = 0;
    registers.r8 = 0;
  } else {
    registers.rdi &= ~uint64_t{CLONE_VM};
  }
  return registers;
}

// What the program is to see behind a call: nothing of the stepper, and of
// vfork, which was made otherwise, what it handed over.
user_regs_struct ShownBehind(const SyscallCall& call,
                             user_regs_struct registers) {
  if (call.number != __NR_rt_sigreturn) {
    registers.r11 &= ~kTrapFlag;
  }
  if (MakesVfork(call)) {
    registers.rdi = call.args[0];
    registers.rsi = call.args[1];
    registers.rdx = call.args[2];
    registers.r10 = call.args[3];
    registers.r8 = call.args[4];
  }
  return registers;
}

}  // namespace

Result<std::optional<ComingCall>> NativeCalls::Coming(NativeThread& thread) {
  CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread.tid));
  CLEW_ASSIGN_OR_RETURN(
      call, BeginSyscall(SyscallNumber(registers.rax),
                         {registers.rdi, registers.rsi, registers.rdx,
                          registers.r10, registers.r8, registers.r9},
                         state_.MemoryOf(thread)));
  if (state_.clock != nullptr && waits_.Hold(thread, call, registers.rsp)) {
    return std::nullopt;
  }
  call.read_digest = ReadsOf(call, state_.memory).digest;
  return ComingCall{.call = call, .registers = registers};
}

Result<After> NativeCalls::Step(NativeThread& thread, const NativeInsn& insn,
                                const ComingCall& coming) {
  SyscallCall call = coming.call;
  CoreEncoder& encoder = state_.EncoderOf(thread);
  encoder.AdvanceTime(TscTicks(++state_.now));
  encoder.FarTransfer();
  thread.in_kernel = true;
  thread.enable_cause = EnableCause::kKernelReturn;
  if (state_.config.encoder.tsc) {
    call.entered_tsc = TscTicks(state_.now);
  }
  thread.call = call;
  thread.call_ip = thread.ip;
  thread.ip = insn.fall_through.as_int();
  state_.uses_timers |= StartsTimer(call);
  if (thread.other_process == nullptr) {
    CLEW_ASSIGN_OR_RETURN(ended, StepOut(thread, call));
    if (ended) {
      return *ended;
    }
  }
  CLEW_ASSIGN_OR_RETURN(answered,
                        BeginInKernel(thread, call, coming.registers));
  if (answered) {
    return After::kGoesOn;
  }
  CLEW_RETURN_IF_ERROR(state_.process.SingleStep(thread.tid, 0));
  std::optional<TraceeStop> stop;
  if (SyscallMayBlock(call.number)) {
    CLEW_ASSIGN_OR_RETURN(
        seen, state_.process.WaitOrAsleep(thread.tid,
                                          TracedProcess::kLooksBeforeAsleep));
    stop = seen;
  } else {
    CLEW_ASSIGN_OR_RETURN(seen, state_.process.WaitOrLongAsleep(thread.tid));
    stop = seen;
  }
  thread.kernel_view.Restore(state_.memory);  // it has been read
  return stop ? Arrive(thread, *stop) : Result<After>(After::kBlocked);
}

// Of the program's own threads, by a call that may end one of them or all.
// nullopt: it is another call.
Result<std::optional<After>> NativeCalls::StepOut(NativeThread& thread,
                                                  const SyscallCall& call) {
  if (call.number == __NR_exit_group) {
    state_.EndByExit(thread, call);
    return After::kEnded;
  }
  if (KillsItself(call, state_.process.process())) {
    state_.EndByKill(thread);
    return After::kEnded;
  }
  if (call.number == __NR_exit) {
    return Leave(thread, call);
  }
  if (Executes(call)) {
    return Replace(thread);
  }
  return std::nullopt;
}

// The part of BeginInKernel that time has.
Result<bool> NativeCalls::BeginInTime(NativeThread& thread,
                                      const SyscallCall& call,
                                      const user_regs_struct& registers) {
  if (const auto result = waits_.Begin(thread, call)) {
    waits_.End(thread, call, *result);
    CLEW_RETURN_IF_ERROR(Answer(thread, registers, *result));
    return true;
  }
  if (const auto made = timers_.Begin(thread, call, registers)) {
    CLEW_RETURN_IF_ERROR(state_.process.SetRegisters(thread.tid, *made));
  }
  return false;
}

// Returns the result that the program sees.
Result<int64_t> NativeCalls::EndInTime(NativeThread& thread,
                                       const SyscallCall& call,
                                       int64_t result) {
  waits_.End(thread, call, result);
  const bool sets_timer = timers_.sets();
  const int64_t shown = state_.clock->Show(call, timers_.End(call, result),
                                           state_.memory, state_.now);
  if (sets_timer || shown != result) {
    CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread.tid));
    if (shown != result) {
      registers.rax = static_cast<uint64_t>(shown);
    }
    if (sets_timer) {
      registers.rdi = call.args[0];
      registers.rsi = call.args[1];
      registers.rdx = call.args[2];
    }
    CLEW_RETURN_IF_ERROR(state_.process.SetRegisters(thread.tid, registers));
  }
  return shown;
}

// What is done to a call before the kernel gets it. Returns true if the kernel
// does not get it.
Result<bool> NativeCalls::BeginInKernel(NativeThread& thread,
                                        const SyscallCall& call,
                                        const user_regs_struct& registers) {
  if (state_.inputs_are_tapped) {
    return MakesSharingProcess(call, state_.memory)
               ? Result<bool>(Unsupported(
                     "the program makes a process by {} that has its memory "
                     "at first: what that writes is in no log of inputs; "
                     "record without --inputs",
                     SyscallName(call.number)))
               : false;
  }
  if (state_.has_rseq && RegistersRseq(call)) {
    state_.NoteRseq(thread, call);
    CLEW_RETURN_IF_ERROR(Answer(thread, registers, 0));
    return true;
  }
  if (call.row->effects != KnownEffects::kAll && !Executes(call)) {
    if (IsMissed(*call.row)) {
      CLEW_RETURN_IF_ERROR(
          state_.NoteDeviation(DeviationOfAbsentCall(call.row->name)));
    }
    CLEW_RETURN_IF_ERROR(Answer(thread, registers, -int64_t{ENOSYS}));
    return true;
  }
  if (state_.cpus != nullptr) {
    if (const auto result =
            state_.cpus->Begin(thread.tid, call, state_.memory)) {
      CLEW_RETURN_IF_ERROR(Answer(thread, registers, *result));
      return true;
    }
  }
  if (state_.take_child && MakesVfork(call)) {
    CLEW_RETURN_IF_ERROR(
        state_.process.SetRegisters(thread.tid, WithOwnMemory(registers)));
  }
  return state_.clock == nullptr ? Result<bool>(false)
                                 : BeginInTime(thread, call, registers);
}

// Whoever was woken is waited for, however long the kernel takes to bring it to
// its stop: so runs are repeatable.
Result<After> NativeCalls::Look(NativeThread& thread) {
  CLEW_ASSIGN_OR_RETURN(stop, state_.process.WaitOrAsleep(thread.tid, 0));
  return stop ? Arrive(thread, *stop) : Result<After>(After::kBlocked);
}

Result<After> NativeCalls::LookOnce(NativeThread& thread) {
  CLEW_ASSIGN_OR_RETURN(stop, state_.process.Wait(thread.tid, false));
  return stop.kind == TraceeStop::Kind::kRunning
             ? Result<After>(After::kBlocked)
             : Arrive(thread, stop);
}

Result<After> NativeCalls::Arrive(NativeThread& thread,
                                  const TraceeStop& first) {
  TraceeStop stop = first;
  if (stop.kind == TraceeStop::Kind::kClone) {
    CLEW_RETURN_IF_ERROR(Adopt(thread, stop.new_thread));
    CLEW_RETURN_IF_ERROR(state_.process.SingleStep(thread.tid, 0));
    CLEW_ASSIGN_OR_RETURN(next, state_.process.Wait(thread.tid, true));
    stop = next;
  }
  if (stop.kind == TraceeStop::Kind::kFork) {
    CLEW_RETURN_IF_ERROR(NoteProcess(thread, stop.new_thread));
    CLEW_RETURN_IF_ERROR(state_.process.SingleStep(thread.tid, 0));
    return Look(thread);
  }
  if (thread.other_process != nullptr &&
      (stop.has_ended() || stop.kind == TraceeStop::Kind::kExec)) {
    return NoteEnd(thread, stop);
  }
  thread.in_vfork.reset();
  if (stop.kind == TraceeStop::Kind::kSignal) {
    thread.signal = stop.signal;
  } else if (stop.kind != TraceeStop::Kind::kTrap) {
    return Unsupported("the program was ended from outside");
  }
  CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread.tid));
  if (thread.signal != 0 && registers.rip == thread.call_ip) {
    return ComeBefore(thread, registers);
  }
  const auto result = static_cast<int64_t>(registers.rax);
  if (AsksForRestart(result)) {
    if (thread.signal != 0) {
      return After::kGoesOn;  // the delivery of the signal says how it ends
    }
    // The trap of the step came first: the signal comes next, or the call is
    // made once more if another thread has taken it.
    CLEW_RETURN_IF_ERROR(state_.process.SingleStep(thread.tid, 0));
    return Look(thread);
  }
  if (IsInterruptedForNothing(thread, result)) {
    if (thread.signal == 0) {
      CLEW_RETURN_IF_ERROR(MakeAgain(thread));
    }  // else its delivery does
    return After::kGoesOn;
  }
  CLEW_RETURN_IF_ERROR(NoteVforkEnd(thread));
  CLEW_RETURN_IF_ERROR(Finish(thread, result));
  return After::kGoesOn;
}

Status NativeCalls::NoteProcess(NativeThread& parent, Tid child) {
  const SyscallCall call = parent.call.value_or(SyscallCall());
  if (MakesSharingProcess(call, state_.memory) &&
      !(state_.take_child && MakesVfork(call))) {
    if (MakesVfork(call)) {
      CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(parent.tid));
      parent.in_vfork = VforkWait{.process = child, .registers = registers};
    }
    return Adopt(parent, child);
  }
  if (MakesVfork(call)) {
    parent.vfork_child = child;
  }
  return LetChildGo(parent, child);
}

// Of another process: it has ended, or runs another program. The call has no
// result.
Result<After> NativeCalls::NoteEnd(NativeThread& thread,
                                   const TraceeStop& stop) {
  if (!stop.has_ended()) {
    CLEW_RETURN_IF_ERROR(LetExecutedGo(state_, thread));
  }
  state_.tracer->Exit(thread.core, thread.tid, thread.parent, state_.now);
  CLEW_RETURN_IF_ERROR(LogEnd(thread, {}));
  return After::kGone;
}

// By a signal that would have been dropped, or that another thread takes.
bool NativeCalls::IsInterruptedForNothing(const NativeThread& thread,
                                          int64_t result) const {
  if (result != -EINTR || !thread.call ||
      !SyscallMayBlock(thread.call->number)) {
    return false;
  }
  return thread.signal == 0
             ? !IsSignalDue(state_.process, thread.tid)
             : IsDropped(state_.process, thread.tid, thread.signal) ||
                   IsForFirst(state_, thread, thread.signal);
}

Status NativeCalls::MakeAgain(NativeThread& thread) {
  CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread.tid));
  registers.rip = thread.call_ip;
  registers.rax = thread.call.value_or(SyscallCall()).number;
  registers.orig_rax = UINT64_MAX;
  CLEW_RETURN_IF_ERROR(state_.process.SetRegisters(thread.tid, registers));
  CLEW_RETURN_IF_ERROR(Finish(thread, kRestartSys));
  thread.ip = thread.call_ip;
  return {};
}

// A child of vfork that ended may have changed its parent's memory; one that
// runs another program by now has not, as a rule.
Status NativeCalls::NoteVforkEnd(NativeThread& thread) {
  const Tid child = std::exchange(thread.vfork_child, Tid(0));
  if (child == Tid(0)) {
    return {};
  }
  std::ifstream file(fmt::format("/proc/{}/stat", child));
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  const auto flags = StatField(stat, kStatFlags);
  return flags && (*flags & kForkedAndNotExecuted) != 0
             ? state_.NoteDeviation(DeviationOfVforkEnd())
             : Status();
}

// A signal came before the kernel took the call. That is the same as one that
// interrupts it as it begins: it is made once more.
Result<After> NativeCalls::ComeBefore(NativeThread& thread,
                                      user_regs_struct registers) {
  // One that was held before a wait is found in it.
  const bool ends_wait =
      thread.wait &&
      DispositionOf(thread.tid, thread.signal) == Disposition::kHandled;
  registers.rax = ends_wait ? static_cast<uint64_t>(-int64_t{EINTR})
                            : thread.call.value_or(SyscallCall()).number;
  registers.rip = ends_wait ? thread.ip : thread.call_ip;
  registers.rcx = thread.ip;
  registers.r11 = registers.eflags;
  CLEW_RETURN_IF_ERROR(state_.process.SetRegisters(thread.tid, registers));
  CLEW_RETURN_IF_ERROR(Finish(thread, ends_wait ? -EINTR : kRestartSys));
  return After::kGoesOn;
}

Status NativeCalls::Finish(NativeThread& thread, int64_t result) {
  if (state_.inputs_are_tapped) {
    return Log(thread, result, {});
  }
  const SyscallCall call = thread.call.value_or(SyscallCall());
  if (state_.clock != nullptr) {
    CLEW_ASSIGN_OR_RETURN(shown, EndInTime(thread, call, result));
    result = shown;
  }
  if (state_.cpus != nullptr) {
    state_.cpus->End(thread.tid, thread.core, call, result, state_.memory);
  }
  if (state_.leaps != nullptr) {
    CLEW_RETURN_IF_ERROR(NoteMemoryFile(call, result));
  }
  CLEW_ASSIGN_OR_RETURN(effects,
                        EffectsOf(call, result, state_.MemoryOf(thread)));
  return Log(thread, result, effects);
}

Status NativeCalls::NoteMemoryFile(const SyscallCall& call, int64_t result) {
  const auto phrase = DeviationOfMemoryFile(
      call.number, call.args, result,
      [&](uint64_t addr) { return state_.memory.Load<uint64_t>(addr); });
  return phrase ? state_.NoteDeviation(*phrase) : Status();
}

void NativeCalls::NoteReport(const SyscallCall& call, int64_t result) {
  std::array<uint8_t, kReportBytesMax> head;
  if (call.number != __NR_write || call.args[0] != STDERR_FILENO ||
      result <= 0) {
    return;
  }
  const auto text = std::span(head).first(
      std::min<uint64_t>(head.size(), static_cast<uint64_t>(result)));
  state_.has_reported |=
      state_.memory.Read(call.args[1], text.data(), text.size()) &&
      IsFailureReport(text);
}

Status NativeCalls::Log(NativeThread& thread, int64_t result,
                        const SyscallEffects& effects) {
  const SyscallCall call =
      std::exchange(thread.call, std::nullopt).value_or(SyscallCall());
  CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread.tid));
  const user_regs_struct shown = ShownBehind(call, registers);
  CLEW_RETURN_IF_ERROR(state_.process.SetRegisters(thread.tid, shown));
  thread.ip = shown.rip;
  SyscallInput input = InputOf(call);
  input.result = result;
  if (state_.config.encoder.tsc) {
    input.left_tsc = TscTicks(state_.now);
  }
  const GuestMemory& memory = state_.MemoryOf(thread);
  input.shared_memory = SharedMemoryOf(call, result, memory);
  NoteOutput(effects, state_.memory, input);
  NoteReport(call, result);
  std::vector<MemoryRange> writes = effects.writes;
  for (const MemoryRange& range :
       state_.files.ChangedBy(call, result, memory)) {
    writes.push_back(range);
  }
  state_.files.Follow(call, result, memory);
  thread.AddInput(input, writes);
  FollowUp(thread, call, result);
  return {};
}

void NativeCalls::FollowUp(NativeThread& thread, const SyscallCall& call,
                           int64_t result) {
  if (result < 0) {
    return;
  }
  waits_.NoteWake(call, result);
  state_.code.Release(call, static_cast<uint64_t>(result));
  if (state_.leaps != nullptr) {
    state_.leaps->NoteCall(call);
  }
  switch (call.number) {
    case __NR_mmap:
      if (const auto path = CodeFileOf(call, result, state_.MemoryOf(thread))) {
        const ExecMapping mapping = CodeMappedBy(call, result, *path);
        state_.tracer->Mmap(thread.core, thread.tid, state_.now, mapping);
        state_.code.Map(mapping);
      }
      return;
    case __NR_set_tid_address:
      thread.clear_tid_addr = call.args[0];
      return;
    case __NR_prctl:
      if (RequestIn(call.args[0]) == PR_SET_NAME) {
        state_.tracer->Comm(thread.core, thread.tid, state_.now, false,
                            state_.memory.Text(call.args[1], 15));
      }
      return;
    default:
      return;
  }
}

// A child process is stepped by nobody. It comes with the registers of its
// parent.
Status NativeCalls::LetChildGo(const NativeThread& parent, Tid child) {
  CLEW_RETURN_IF_ERROR(state_.process.Wait(child, true));
  CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(child));
  CLEW_RETURN_IF_ERROR(state_.process.SetRegisters(
      child, ShownBehind(parent.call.value_or(SyscallCall()), registers)));
  if (state_.on_child) {
    CLEW_RETURN_IF_ERROR(state_.on_child(child, parent.tid));
  }
  if (state_.leaps != nullptr) {
    (void)state_.leaps->Leave(child);  // what stays does no harm
  }
  return state_.LetChildGo(child);
}

Result<After> NativeCalls::Replace(NativeThread& thread) {
  CLEW_ASSIGN_OR_RETURN(stop, state_.process.Execute(thread.tid));
  if (stop.kind != TraceeStop::Kind::kExec) {
    return Arrive(thread, stop);
  }
  CLEW_RETURN_IF_ERROR(LetSharingGo(state_));
  state_.replaced = true;
  return After::kEnded;
}

// A new thread stops by itself, before its first instruction. So does a process
// that has the program's memory.
Status NativeCalls::Adopt(NativeThread& parent, Tid tid) {
  const SyscallCall call = parent.call.value_or(SyscallCall());
  CLEW_RETURN_IF_ERROR(state_.process.Wait(tid, true));
  CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(tid));
  user_regs_struct shown = registers;
  shown.r11 &= ~kTrapFlag;
  CLEW_RETURN_IF_ERROR(state_.process.SetRegisters(tid, shown));
  auto child = std::make_unique<NativeThread>();
  child->tid = tid;
  child->parent = parent.tid;
  child->slot = static_cast<uint32_t>(state_.threads.size());
  child->ip = registers.rip;
  if (call.number == __NR_clone && (call.args[0] & CLONE_CHILD_CLEARTID) != 0) {
    child->clear_tid_addr = call.args[3];
  }
  if (parent.other_process != nullptr || MakesProcess(call)) {
    CLEW_RETURN_IF_ERROR(BeginSharing(state_, *child));
  }
  CLEW_RETURN_IF_ERROR(state_.OpenInputs(*child));
  if (state_.cpus != nullptr) {
    state_.cpus->Inherit(parent.tid, tid);
  }
  state_.tracer->Fork(parent.core, parent.tid, tid, state_.now);
  state_.threads.push_back(std::move(child));
  on_new_thread_(*state_.threads.back());
  return {};
}

// exit(2). What the kernel writes then belongs to the call.
Result<After> NativeCalls::Leave(NativeThread& thread,
                                 const SyscallCall& call) {
  if (!state_.HasOthers(thread)) {
    state_.EndByExit(thread, call);
    return After::kEnded;
  }
  state_.tracer->Exit(thread.core, thread.tid, thread.parent, state_.now);
  std::vector<MemoryRange> writes = HeldRobustLocks(thread.tid, state_.memory);
  // Signals of the process are for the other threads now.
  CLEW_RETURN_IF_ERROR(state_.process.SetSignalMask(thread.tid, UINT64_MAX));
  CLEW_RETURN_IF_ERROR(state_.process.SingleStep(thread.tid, 0));
  CLEW_RETURN_IF_ERROR(AwaitEnd(thread));
  CLEW_RETURN_IF_ERROR(LogEnd(thread, std::move(writes)));
  return After::kGone;
}

// In the call by which a thread has ended the kernel has made these writes,
// too.
Status NativeCalls::LogEnd(NativeThread& thread,
                           std::vector<MemoryRange> writes) {
  if (thread.clear_tid_addr != 0 &&
      state_.memory.Load<uint32_t>(thread.clear_tid_addr)) {
    writes.push_back({thread.clear_tid_addr, 4});
  }
  if (const auto call = std::exchange(thread.call, std::nullopt)) {
    thread.AddInput(InputOf(*call), writes);
  }
  waits_.NoteChange(thread.clear_tid_addr);
  return thread.CloseInputs();
}

// The first thread stays until all others have ended.
Status NativeCalls::AwaitEnd(const NativeThread& thread) {
  if (thread.tid != state_.process.first_thread()) {
    CLEW_ASSIGN_OR_RETURN(stop, state_.process.Wait(thread.tid, true));
    return stop.kind == TraceeStop::Kind::kExited
               ? Status()
               : Unsupported("thread {} did not end at its exit(2)",
                             thread.tid);
  }
  CLEW_ASSIGN_OR_RETURN(
      stop, state_.process.WaitOrAsleep(thread.tid,
                                        TracedProcess::kLooksBeforeAsleep));
  return stop ? Unsupported("the first thread did not end at its exit(2)")
              : Status();
}

// As a kernel that does not have the call.
Status NativeCalls::Answer(NativeThread& thread, user_regs_struct registers,
                           int64_t result) {
  registers.rax = static_cast<uint64_t>(result);
  registers.rip += kSyscallBytes;
  registers.rcx = registers.rip;
  registers.r11 = registers.eflags & ~kTrapFlag;
  CLEW_RETURN_IF_ERROR(state_.process.SetRegisters(thread.tid, registers));
  return Log(thread, result, {});
}

}  // namespace clew::recorder
