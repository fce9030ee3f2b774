#include "follower/start_registers.h"

#include "machine/xsave.h"

namespace clew::follower {

machine::Registers StartRegisters(const StartThread& start,
                                  const StartState& state) {
  machine::Registers registers;
  registers.gpr = start.gpr;
  registers.rip = start.rip.as_int();
  registers.rflags = start.rflags;
  registers.fs_base = start.fs_base;
  registers.gs_base = start.gs_base;
  registers.mxcsr = start.mxcsr;
  registers.mxcsr_mask = state.mxcsr_mask;
  registers.x87.control = start.x87_control;
  if (!start.xsave.empty()) {
    const ToldCpu* const told = state.told_cpu ? &*state.told_cpu : nullptr;
    machine::RestoreXsave(start.xsave, machine::LayoutOf(registers, told),
                          registers);
  }
  return registers;
}

}  // namespace clew::follower
