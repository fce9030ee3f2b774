#include "recorder/tracer/runtime/signal_frame.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/runtime/code/encode.h"
#include "recorder/tracer/runtime/program_memory.h"

namespace clew::tracer {
namespace {

// Where a ucontext has them, in the order of their encodings.
constexpr std::array<size_t, 16> kGregs = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

constexpr uint64_t kRedZoneBytes = 128;
// Source: kernel, include/uapi/linux/signal.h, SS_AUTODISARM.
constexpr uint32_t kAutoDisarm = 1u << 31;
// Source: x86 kernel, include/uapi/asm/signal.h, MINSIGSTKSZ.
constexpr uint64_t kAltStackBytesMin = 2048;

// Source: x86 kernel, include/uapi/asm/sigcontext.h, struct _fpx_sw_bytes, at
// the end of the legacy state; FP_XSTATE_MAGIC1.
uint64_t VectorStateBytes(const uint8_t* state) {
  constexpr uint64_t kLegacyBytes = 512;
  constexpr uint64_t kSoftwareAt = 464;
  constexpr uint32_t kMagic = 0x46505853;
  const auto* const software =
      reinterpret_cast<const uint32_t*>(state + kSoftwareAt);
  return software[0] == kMagic ? software[1] : kLegacyBytes;
}

bool IsWithin(const SignalState& signals, uint64_t sp) {
  return sp > signals.alt_stack &&
         sp - signals.alt_stack <= signals.alt_stack_bytes;
}
bool IsOnAltStack(const SignalState& signals, uint64_t sp) {
  return (signals.alt_stack_flags & kAutoDisarm) == 0 && IsWithin(signals, sp);
}
uint32_t AltStackUse(const SignalState& signals, uint64_t sp) {
  if (signals.alt_stack_bytes == 0) {
    return SS_DISABLE;
  }
  return IsOnAltStack(signals, sp) ? SS_ONSTACK : 0;
}

void TellAltStack(const SignalState& signals, uint32_t flags, stack_t& told) {
  told = {};
  told.ss_sp = reinterpret_cast<void*>(signals.alt_stack);
  told.ss_flags = static_cast<int>(flags);
  told.ss_size = signals.alt_stack_bytes;
}

// Returns 0 or an error.
uint64_t ChangeAltStack(SignalState& signals, const stack_t& wanted,
                        uint64_t sp, uint64_t bytes_min) {
  if (IsOnAltStack(signals, sp)) {
    return static_cast<uint64_t>(-EPERM);
  }
  const auto flags = static_cast<uint32_t>(wanted.ss_flags);
  const uint32_t mode = flags & ~kAutoDisarm;
  if (mode == SS_DISABLE) {
    signals.alt_stack = 0;
    signals.alt_stack_bytes = 0;
    signals.alt_stack_flags = flags;
    return 0;
  }
  if (mode != SS_ONSTACK && mode != 0) {
    return static_cast<uint64_t>(-EINVAL);
  }
  const auto addr = reinterpret_cast<uint64_t>(wanted.ss_sp);
  if (signals.alt_stack == addr && signals.alt_stack_bytes == wanted.ss_size &&
      signals.alt_stack_flags == flags) {
    return 0;
  }
  if (wanted.ss_size < bytes_min) {
    return static_cast<uint64_t>(-ENOMEM);
  }
  signals.alt_stack = addr;
  signals.alt_stack_bytes = wanted.ss_size;
  signals.alt_stack_flags = flags;
  return 0;
}

// Where the kernel would write, and whether it may.
struct FramePlace {
  uint64_t vectors = 0;
  uint64_t frame = 0;
  bool overflows = false;
};
FramePlace PlaceFor(const SignalState& signals, const KernelAction& action,
                    uint64_t program_sp, uint64_t vector_bytes) {
  const bool is_nested = IsOnAltStack(signals, program_sp);
  uint64_t sp = program_sp - kRedZoneBytes;
  const bool enters =
      (action.flags & SA_ONSTACK) != 0 && AltStackUse(signals, sp) == 0;
  if (enters) {
    sp = signals.alt_stack + signals.alt_stack_bytes;
  }
  FramePlace place;
  place.vectors = (sp - vector_bytes) & ~uint64_t{63};
  place.frame = ((place.vectors - sizeof(SignalFrame)) & ~uint64_t{15}) -
                sizeof(uint64_t);
  place.overflows = (is_nested || enters) && !IsWithin(signals, place.frame);
  return place;
}

}  // namespace

uint64_t SignalFrame::gpr(size_t number) const { return regs[kGregs[number]]; }
void SignalFrame::SetGpr(size_t number, uint64_t value) {
  regs[kGregs[number]] = value;
}

ProgramFrame CopyToProgram(ThreadState& thread, const KernelAction& action,
                           SignalFrame& frame) {
  SignalState& signals = thread.signals;
  const auto* const vectors = reinterpret_cast<const uint8_t*>(frame.vectors);
  const uint64_t vector_bytes = VectorStateBytes(vectors);
  const FramePlace place =
      PlaceFor(signals, action, frame.gpr(kRsp), vector_bytes);
  const uint64_t all_bytes = place.vectors + vector_bytes - place.frame;
  if (place.overflows || !CanWrite(place.frame, all_bytes)) {
    return {};
  }
  TellAltStack(signals, signals.alt_stack_flags, frame.alt_stack);
  frame.vectors = place.vectors;
  std::copy_n(vectors, vector_bytes, reinterpret_cast<uint8_t*>(place.vectors));
  // The kernel tells only those that ask what came.
  const uint64_t bytes = (action.flags & SA_SIGINFO) != 0
                             ? sizeof(SignalFrame)
                             : offsetof(SignalFrame, info);
  std::copy_n(reinterpret_cast<const uint8_t*>(&frame), bytes,
              reinterpret_cast<uint8_t*>(place.frame));
  if ((signals.alt_stack_flags & kAutoDisarm) != 0) {
    signals.alt_stack = 0;
    signals.alt_stack_bytes = 0;
    signals.alt_stack_flags = SS_DISABLE;
  }
  return {place.frame, all_bytes};
}

uint64_t SetAltStack(ThreadState& thread,
                     const std::array<uint64_t, 6>& arguments) {
  const uint64_t wanted_at = arguments[0];
  const uint64_t old_at = arguments[1];
  const uint64_t sp = thread.gpr[kRsp];
  SignalState& signals = thread.signals;
  if (wanted_at != 0 && !CanRead(wanted_at, sizeof(stack_t))) {
    return static_cast<uint64_t>(-EFAULT);
  }
  stack_t old;
  TellAltStack(
      signals,
      AltStackUse(signals, sp) | (signals.alt_stack_flags & kAutoDisarm), old);
  if (wanted_at != 0) {
    const stack_t wanted = *reinterpret_cast<const stack_t*>(wanted_at);
    const uint64_t result =
        ChangeAltStack(signals, wanted, sp, kAltStackBytesMin);
    if (IsError(result)) {
      return result;
    }
  }
  if (old_at != 0) {
    if (!CanWrite(old_at, sizeof old)) {
      return static_cast<uint64_t>(-EFAULT);
    }
    *reinterpret_cast<stack_t*>(old_at) = old;
  }
  return 0;
}

void RestoreAltStack(ThreadState& thread, const SignalFrame& frame) {
  ChangeAltStack(thread.signals, frame.alt_stack, thread.gpr[kRsp], 0);
}

void TakeOverAltStack(ThreadState& thread) {
  stack_t had = {};
  Call(SYS_sigaltstack, 0, AddrOf(&had));
  if (had.ss_size != 0) {
    thread.signals.alt_stack = reinterpret_cast<uint64_t>(had.ss_sp);
    thread.signals.alt_stack_bytes = had.ss_size;
    thread.signals.alt_stack_flags = static_cast<uint32_t>(had.ss_flags);
  }
}

void GiveBackAltStack(const ThreadState& thread) {
  stack_t had;
  TellAltStack(thread.signals,
               AltStackUse(thread.signals, 0) |
                   (thread.signals.alt_stack_flags & kAutoDisarm),
               had);
  Call(SYS_sigaltstack, AddrOf(&had));
}

stack_t SignalStack(const ThreadState& thread) {
  stack_t stack = {};
  stack.ss_sp = reinterpret_cast<void*>(AddrOf(&thread) + kSignalStackAt);
  stack.ss_size = kSignalStackBytes;
  return stack;
}

void BeginSignalStack(ThreadState& thread) {
  const stack_t stack = SignalStack(thread);
  Call(SYS_sigaltstack, AddrOf(&stack));
}

}  // namespace clew::tracer
