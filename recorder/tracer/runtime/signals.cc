#include "recorder/tracer/runtime/signals.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "recorder/tracer/raised_signals.h"
#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/runtime/code/encode.h"
#include "recorder/tracer/runtime/forget.h"
#include "recorder/tracer/runtime/inputs.h"
#include "recorder/tracer/runtime/leap.h"
#include "recorder/tracer/runtime/log.h"
#include "recorder/tracer/runtime/park.h"
#include "recorder/tracer/runtime/program_memory.h"
#include "recorder/tracer/runtime/signal_actions.h"
#include "recorder/tracer/runtime/signal_frame.h"
#include "recorder/tracer/runtime/signal_mask.h"
#include "recorder/tracer/runtime/threads.h"
#include "recorder/tracer/runtime/translate.h"

extern "C" {
// In entries.S. Where a signal does not let a call begin: from behind the first
// to the second.
[[gnu::visibility("hidden")]] uint64_t tracer_make_call(
    uint64_t number, const uint64_t* arguments);
[[gnu::visibility("hidden")]] void tracer_make_call_check();
[[gnu::visibility("hidden")]] void tracer_make_call_insn();
[[gnu::visibility("hidden")]] void tracer_make_call_end();
// Makes rt_sigreturn with a frame.
[[gnu::visibility("hidden"), noreturn]] void tracer_return(
    clew::tracer::SignalFrame* frame);
[[gnu::visibility("hidden")]] void tracer_at_boundary();
}

namespace clew::tracer {
namespace {

template <class Entry>
uint64_t AddrOfEntry(Entry* entry) {
  return reinterpret_cast<uint64_t>(entry);
}

// Puts the registers in place of a frame's that tells where the runtime is.
void SetFromState(SignalFrame& frame, const ThreadState& thread) {
  for (size_t i = 0; i < thread.gpr.size(); ++i) {
    frame.SetGpr(i, thread.gpr[i]);
  }
  frame.regs[REG_RIP] = thread.signals.boundary;
  frame.regs[REG_EFL] = thread.rflags;
  frame.SetMask(thread.signals.held_mask);
}

// Likewise where a frame tells where in a copy the thread is. Where it is at an
// address of the program's, all is as it should be.
void SetFromCopy(SignalFrame& frame, ThreadState& thread) {
  Runtime& runtime = RuntimeOf(thread);
  const uint64_t ip = frame.regs[REG_RIP];
  const Locked locked(runtime.lock);
  const auto insn = InsnOfCopy(runtime, ip);
  if (!insn) {
    return;
  }
  if (insn->saved != kNoRegister) {
    frame.SetGpr(insn->saved, thread.gpr[insn->saved]);
  }
  frame.regs[REG_RIP] = insn->addr;
  siginfo_t& info = frame.info;
  if (reinterpret_cast<uint64_t>(info.si_addr) == ip) {
    info.si_addr = reinterpret_cast<void*>(insn->addr);
  }
}

// Sends the signal to the thread once more.
void SendAgain(uint64_t signal, const siginfo_t& info) {
  const uint64_t process = Call(SYS_getpid);
  const uint64_t thread = Call(SYS_gettid);
  // There are as many as may wait: it was one of them, so there will be room.
  while (Call(SYS_rt_tgsigqueueinfo, process, thread, signal, AddrOf(&info)) ==
         static_cast<uint64_t>(-EAGAIN)) {
    Call(SYS_sched_yield);
  }
}

// Lets the thread go on with all signals blocked, and the signal sent again.
void Hold(ThreadState& thread, uint64_t signal, SignalFrame& frame) {
  SignalState& signals = thread.signals;
  const uint64_t ip = frame.regs[REG_RIP];
  siginfo_t& info = frame.info;
  if (signal == SIGSYS && reinterpret_cast<uint64_t>(info.si_addr) == ip) {
    info.si_addr = reinterpret_cast<void*>(thread.last_call + kSyscallBytes);
  }
  if (signals.is_holding == 0 && signals.is_at_boundary == 0) {
    signals.held_mask = frame.mask;
  }
  signals.is_holding = 1;
  frame.SetMask(~kRaisedSignals | frame.mask | SignalBit(signal));
  if (ip > AddrOfEntry(tracer_make_call_check) &&
      ip <= AddrOfEntry(tracer_make_call_insn)) {
    frame.regs[REG_RIP] = AddrOfEntry(tracer_make_call_end);
    frame.SetGpr(kRax, kNotMade);
  }
  SendAgain(signal, info);
}

// The program goes on in its handler, at a boundary. `mask` is in force until
// then.
void EnterHandler(ThreadState& thread, uint64_t signal,
                  const KernelAction& action, SignalFrame& frame,
                  uint64_t mask) {
  SignalState& signals = thread.signals;
  signals.is_at_boundary = 0;
  const uint64_t interrupted = frame.regs[REG_RIP];
  Flush(thread, BatchEnd::kInterrupted, interrupted);
  const uint64_t flags = frame.regs[REG_EFL];
  for (size_t i = 0; i < thread.gpr.size(); ++i) {
    thread.gpr[i] = frame.gpr(i);
  }
  const ProgramFrame copied = CopyToProgram(thread, action, frame);
  const uint64_t sp = copied.addr;
  if (sp == 0) {
    EndBy(SIGSEGV);
  }
  thread.gpr[kRdi] = signal;
  thread.gpr[kRsi] = sp + offsetof(SignalFrame, info);
  thread.gpr[kRdx] = sp + offsetof(SignalFrame, flags);
  thread.gpr[kRax] = 0;
  thread.gpr[kRsp] = sp;
  // Source: x86 kernel, arch/x86/kernel/signal.c, handle_signal.
  constexpr uint64_t kClearedFlags = 1u << 8 | 1u << 10 | 1u << 16;
  thread.rflags = flags & ~kClearedFlags;
  if (TellsInputs(thread)) {
    TellSignal(thread,
               {.number = signal,
                .interrupted_ip = interrupted,
                .handler_ip = action.handler,
                .rsp = sp,
                .rdi = thread.gpr[kRdi],
                .rsi = thread.gpr[kRsi],
                .rdx = thread.gpr[kRdx],
                .rax = thread.gpr[kRax]},
               copied.bytes);
  }
  signals.boundary = action.handler;
  signals.held_mask =
      mask | action.mask |
      ((action.flags & SA_NODEFER) != 0 ? 0 : SignalBit(signal));
  signals.is_holding = 1;
}

// The mask that a system call which a signal interrupted had for its time;
// `otherwise` if it had none.
uint64_t MaskOfCall(uint64_t number, const std::array<uint64_t, 6>& arguments,
                    uint64_t otherwise) {
  uint64_t at = 0;
  switch (number) {
    case SYS_rt_sigsuspend:
      at = arguments[0];
      break;
    case SYS_ppoll:
      at = arguments[3];
      break;
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      at = arguments[4];
      break;
    case SYS_pselect6:
    case SYS_io_pgetevents:
      // Its address and size are there.
      at = arguments[5];
      if (at != 0 && CanRead(at, sizeof at)) {
        at = *reinterpret_cast<const uint64_t*>(at);
      }
      break;
    default:
      break;
  }
  return at != 0 && CanRead(at, sizeof(uint64_t))
             ? *reinterpret_cast<const uint64_t*>(at)
             : otherwise;
}

void LetInUnder(ThreadState& thread, uint64_t addr, uint64_t open_mask) {
  SignalState& signals = thread.signals;
  do {
    signals.boundary = addr;
    signals.open_mask = open_mask;
    signals.is_at_boundary = 1;
    signals.is_holding = 0;
    SetMask(open_mask);
    if (open_mask != signals.held_mask) {
      SetMask(signals.held_mask);
    }
    signals.is_at_boundary = 0;
  } while (signals.is_holding != 0 && !IsToPark(thread));
}

}  // namespace

uint64_t MakeCall(uint64_t number, const std::array<uint64_t, 6>& arguments) {
  return tracer_make_call(number, arguments.data());
}

void LetIn(ThreadState& thread, uint64_t addr) {
  if (thread.signals.is_holding != 0) {
    LetInUnder(thread, addr, thread.signals.held_mask);
  }
}

void LetInBehindCall(ThreadState& thread, uint64_t addr, uint64_t number,
                     const std::array<uint64_t, 6>& arguments) {
  SignalState& signals = thread.signals;
  if (signals.is_holding == 0) {
    return;
  }
  LetInUnder(thread, addr,
             thread.gpr[kRax] == static_cast<uint64_t>(-EINTR)
                 ? MaskOfCall(number, arguments, signals.held_mask)
                 : signals.held_mask);
}

uint64_t ReturnFromHandler(ThreadState& thread,
                           const std::array<uint64_t, 6>& arguments) {
  SignalState& signals = thread.signals;
  const SignalsBlocked blocked(thread);
  if (signals.is_holding != 0) {
    return kNotMade;
  }
  // The handler has returned: the restorer's address is not there any more.
  const uint64_t frame_at = thread.gpr[kRsp] - sizeof(uint64_t);
  constexpr uint64_t kBytes = offsetof(SignalFrame, info);
  if (!CanRead(frame_at, kBytes)) {
    EndBy(SIGSEGV);
  }
  SignalFrame frame = {};
  std::copy_n(reinterpret_cast<const uint8_t*>(frame_at), kBytes,
              reinterpret_cast<uint8_t*>(&frame));
  if (!EndsLogAtCalls(thread)) {  // otherwise it was before
    Flush(thread, BatchEnd::kCalled, thread.last_call);
  }
  for (size_t i = 0; i < thread.gpr.size(); ++i) {
    thread.gpr[i] = frame.gpr(i);
  }
  if (TellsInputs(thread)) {
    TellCall(thread, BeforeCall(thread, SYS_rt_sigreturn, arguments),
             thread.gpr[kRax]);
  }
  // Source: x86 kernel, arch/x86/kernel/signal.c, FIX_EFLAGS.
  constexpr uint64_t kRestoredFlags = 0x50dd5;
  thread.rflags = (thread.rflags & ~kRestoredFlags) |
                  (frame.regs[REG_EFL] & kRestoredFlags);
  RestoreAltStack(thread, frame);
  signals.boundary = frame.regs[REG_RIP];
  signals.held_mask = frame.mask;
  signals.is_holding = 1;
  signals.is_blocking = 0;  // `blocked` does not end here
  // The vectors are read from where the program has them.
  frame.alt_stack = SignalStack(thread);
  frame.SetMask(~0ull);
  frame.regs[REG_EFL] = 2;
  frame.regs[REG_RIP] = AddrOfEntry(tracer_at_boundary);
  frame.SetGpr(kRsp, thread.runtime_stack);
  tracer_return(&frame);
}

void BeginSignals(ThreadState& child, const ThreadState& parent,
                  uint64_t flags) {
  child.signals = parent.signals;
  child.signals.is_blocking = 0;
  if ((flags & CLONE_SIGHAND) == 0) {
    CopyActions(child, parent);
  }
  if ((flags & CLONE_VFORK) == 0) {
    child.signals.alt_stack = 0;
    child.signals.alt_stack_bytes = 0;
    child.signals.alt_stack_flags = SS_DISABLE;
  }
}

extern "C" {

// Returns whether the program goes on at a boundary; otherwise the thread goes
// on as the frame says.
bool tracer_on_signal(uint64_t signal, SignalFrame* frame) {
  ThreadState* found = nullptr;
  asm volatile("movq %%gs:%c1, %0"
               : "=r"(found)
               : "i"(offsetof(ThreadState, self)));
  ThreadState& thread = *found;
  SignalState& signals = thread.signals;
  const bool is_at_boundary = signals.is_at_boundary != 0;
  if (!is_at_boundary &&
      !IsRaised(static_cast<int>(signal), frame->info.si_code)) {
    Hold(thread, signal, *frame);
    return false;
  }
  Runtime& runtime = RuntimeOf(thread);
  const uint64_t ip = frame->regs[REG_RIP];
  if (!is_at_boundary && IsInImage(runtime, ip)) {
    Stop(runtime, Fault::kRuntime, ip);
  }
  const KernelAction action = TakeAction(thread, signal);
  if (!action.has_handler()) {
    // Another thread has taken it away. The kernel knows what to do: with the
    // signal, or where the instruction faults once more.
    if (is_at_boundary) {
      Hold(thread, signal, *frame);
    }
    return false;
  }
  uint64_t mask = signals.open_mask;
  if (is_at_boundary) {
    SetFromState(*frame, thread);
  } else {
    mask = signals.is_holding != 0 ? signals.held_mask : frame->mask;
    frame->SetMask(mask);
    SetFromCopy(*frame, thread);
  }
  EnterHandler(thread, signal, action, *frame, mask);
  return true;
}

void tracer_on_boundary(ThreadState* thread) {
  const uint64_t addr = thread->signals.boundary;
  ForgetBetweenLeaps(RuntimeOf(*thread));
  ParkIfAsked(*thread, addr);
  if (thread->leap.is_counted != 0) {
    BeginCounted(*thread, addr);
    return;
  }
  BeginAt(*thread, addr);
  LetIn(*thread, addr);
}

}  // extern "C"

}  // namespace clew::tracer
