#include "recorder/native/native_signals.h"

#include <fmt/format.h>
#include <signal.h>
#include <ucontext.h>

#include <utility>

#include "common/linux/syscall_result.h"
#include "recorder/native/tracee/signal_disposition.h"

namespace clew::recorder {
namespace {

constexpr uint64_t kContextOffset = 8;  // of the frame: behind the restorer
// Of the 512 bytes of FXSAVE: where the kernel tells the size of all of the
// FPU's state, if it does. Source: asm/sigcontext.h, struct _fpx_sw_bytes.
constexpr uint64_t kFxsaveBytes = 512;
constexpr uint64_t kSoftwareBytes = 464;
constexpr uint32_t kMagic = 0x46505853;  // FP_XSTATE_MAGIC1

// From the frame to the end of the FPU's state, which is on top.
uint64_t FrameBytes(const GuestMemory& memory, uint64_t frame,
                    const ucontext_t& context) {
  const auto fpu = reinterpret_cast<uint64_t>(context.uc_mcontext.fpregs);
  struct {
    uint32_t magic;
    uint32_t extended_bytes;
  } software = {};
  const bool read =
      memory.Read(fpu + kSoftwareBytes, &software, sizeof(software));
  const uint64_t bytes =
      read && software.magic == kMagic ? software.extended_bytes : kFxsaveBytes;
  return fpu + bytes - frame;
}

uint64_t RegisterOf(const ucontext_t& context, int index) {
  return static_cast<uint64_t>(context.uc_mcontext.gregs[index]);
}

}  // namespace

Result<After> NativeSignals::Deliver(NativeThread& thread) {
  const int signal = std::exchange(thread.signal, 0);
  if (IsForFirst(state_, thread, signal)) {
    CLEW_RETURN_IF_ERROR(passed_.Pass(thread, signal));
    return GoOn(thread);
  }
  CLEW_RETURN_IF_ERROR(passed_.Restore(thread, signal));
  switch (DispositionOf(thread.tid, signal)) {
    case Disposition::kHandled:
      CLEW_RETURN_IF_ERROR(EnterHandler(thread, signal));
      return After::kGoesOn;
    case Disposition::kStops:
      if (state_.on_stop) {
        state_.on_stop(signal);
      }
      [[fallthrough]];
    case Disposition::kIgnored:
      return GoOn(thread);
    case Disposition::kEnds:
      return End(thread, signal);
  }
  return After::kGoesOn;
}

// Without the signal. A call that it interrupted is made once more.
Result<After> NativeSignals::GoOn(NativeThread& thread) {
  if (thread.call) {
    CLEW_RETURN_IF_ERROR(calls_.MakeAgain(thread));
  }
  return After::kGoesOn;
}

// A call that it interrupted has EINTR as its result then, or is to be made
// once more.
Status NativeSignals::EnterHandler(NativeThread& thread, int signal) {
  CLEW_RETURN_IF_ERROR(state_.process.SingleStep(thread.tid, signal));
  CLEW_ASSIGN_OR_RETURN(stop, state_.process.Wait(thread.tid, true));
  if (stop.kind == TraceeStop::Kind::kSignal) {
    thread.signal = stop.signal;
  } else if (stop.kind != TraceeStop::Kind::kTrap) {
    return Unsupported("signal {}: its handler could not be entered", signal);
  }
  CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread.tid));
  const auto context =
      state_.memory.Load<ucontext_t>(registers.rsp + kContextOffset);
  if (!context) {
    return Unsupported("signal {}: there is no frame at {:#x}", signal,
                       registers.rsp);
  }
  const uint64_t interrupted = RegisterOf(*context, REG_RIP);
  if (thread.call) {
    CLEW_RETURN_IF_ERROR(ClearTrapFlag(registers.rsp, *context));
    const bool again = interrupted == thread.call_ip;
    CLEW_RETURN_IF_ERROR(calls_.Finish(
        thread, again ? kRestartSys
                      : static_cast<int64_t>(RegisterOf(*context, REG_RAX))));
  }
  SignalInput input;
  input.number = signal;
  input.interrupted_ip = TraceeAddr(interrupted);
  input.handler_ip = TraceeAddr(registers.rip);
  input.rsp = registers.rsp;
  input.rdi = registers.rdi;
  input.rsi = registers.rsi;
  input.rdx = registers.rdx;
  input.rax = registers.rax;
  const std::vector<MemoryRange> frame = {
      {registers.rsp, FrameBytes(state_.memory, registers.rsp, *context)}};
  thread.AddInput(input, frame);
  thread.ip = registers.rip;
  return {};
}

// SYSCALL leaves the flags in R11, the stepper's among them.
Status NativeSignals::ClearTrapFlag(uint64_t frame, const ucontext_t& context) {
  const uint64_t r11 = RegisterOf(context, REG_R11) & ~kTrapFlag;
  const uint64_t at = frame + kContextOffset +
                      offsetof(ucontext_t, uc_mcontext.gregs) +
                      REG_R11 * sizeof(greg_t);
  return state_.memory.Write(at, &r11, sizeof(r11))
             ? Status()
             : Unsupported("the signal frame at {:#x} cannot be written",
                           frame);
}

Result<After> NativeSignals::End(NativeThread& thread, int signal) {
  if (thread.other_process != nullptr) {
    CLEW_RETURN_IF_ERROR(state_.process.SingleStep(thread.tid, signal));
    return calls_.Look(thread);
  }
  CLEW_ASSIGN_OR_RETURN(info, state_.process.SignalInfo(thread.tid));
  Failure failure;
  failure.kind = FailureKind::kSignal;
  failure.signal = signal;
  failure.thread = thread.tid;
  failure.ip = TraceeAddr(thread.ip);
  if (info.si_code > 0 && (signal == SIGSEGV || signal == SIGBUS)) {
    failure.addr = TraceeAddr(reinterpret_cast<uint64_t>(info.si_addr));
  }
  state_.end = {.failure = failure, .signal = signal, .code = info.si_code};
  return After::kEnded;
}

}  // namespace clew::recorder
