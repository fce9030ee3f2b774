#include "recorder/tracer/runtime/leave.h"

#include <asm/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/runtime/signal_actions.h"
#include "recorder/tracer/runtime/signal_frame.h"
#include "recorder/tracer/runtime/signal_mask.h"

extern "C" {
// In entries.S: 16 registers as a state has them, RFLAGS, and RIP.
[[gnu::visibility("hidden"), noreturn]] void tracer_go_to_program(
    const uint64_t* registers);
}

namespace clew::tracer {

void GiveBack(ThreadState& thread) {
  GiveBackActions(RuntimeOf(thread));
  GiveBackAltStack(thread);
}

void Leave(ThreadState& thread) {
  GiveBack(thread);
  // The slot may be another thread's as soon as it is given back.
  std::array<uint64_t, 18> registers = {};
  std::copy_n(thread.gpr.begin(), thread.gpr.size(), registers.begin());
  registers[16] = thread.rflags;
  registers[17] = thread.resume;
  const uint64_t mask = thread.signals.blocked_mask;
  SlotOf(thread).use.store(SlotUse::kFree);
  Call(SYS_arch_prctl, ARCH_SET_GS, 0);
  SetMask(mask);
  tracer_go_to_program(registers.data());
}

}  // namespace clew::tracer
