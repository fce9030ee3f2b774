#ifndef CLEW_RECORDER_TRACER_RUNTIME_SIGNAL_FRAME_H_
#define CLEW_RECORDER_TRACER_RUNTIME_SIGNAL_FRAME_H_

#include <signal.h>
#include <ucontext.h>

#include <array>
#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"
#include "recorder/tracer/runtime/signal_actions.h"

// The frames of signals, and where they belong. The kernel writes them on the
// runtime's signal stack; the program gets a copy where it would have had it.
// Source: x86 kernel, arch/x86/kernel/signal.c, kernel/signal.c.

namespace clew::tracer {

// Source: x86-64 kernel, arch/x86/include/asm/sigframe.h, struct rt_sigframe.
struct SignalFrame {
  uint64_t restorer = 0;
  uint64_t flags = 0;  // from here on a ucontext_t
  uint64_t link = 0;
  stack_t alt_stack = {};
  std::array<uint64_t, NGREG> regs = {};  // by REG_... of <ucontext.h>
  uint64_t vectors = 0;                   // the address of their state
  std::array<uint64_t, 8> reserved = {};
  uint64_t mask = 0;
  siginfo_t info = {};

  uint64_t gpr(size_t number) const;
  void SetGpr(size_t number, uint64_t value);
  void SetMask(uint64_t wanted) {
    mask = wanted;
    regs[REG_OLDMASK] = wanted;
  }
};
static_assert(sizeof(SignalFrame) == 440);

// Where a frame is in the program, with its vectors; an `addr` of 0: nowhere.
struct ProgramFrame {
  uint64_t addr = 0;
  uint64_t bytes = 0;
};

// Copies what the kernel wrote to where the program, with the registers that
// the frame has, gets it, if it can be there.
ProgramFrame CopyToProgram(ThreadState& thread, const KernelAction& action,
                           SignalFrame& frame);

// Makes sigaltstack for the program.
uint64_t SetAltStack(ThreadState& thread,
                     const std::array<uint64_t, 6>& arguments);

// Sets the alternate stack to that of a frame which a handler returns to, whose
// registers are in the state.
void RestoreAltStack(ThreadState& thread, const SignalFrame& frame);

// Takes over the alternate stack that the calling thread has had, and gives
// back the program's.
void TakeOverAltStack(ThreadState& thread);
void GiveBackAltStack(const ThreadState& thread);

// Lets the kernel write the calling thread's frames to its signal stack.
void BeginSignalStack(ThreadState& thread);
// Which is this.
stack_t SignalStack(const ThreadState& thread);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_SIGNAL_FRAME_H_
