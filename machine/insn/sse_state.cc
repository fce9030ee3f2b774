// LDMXCSR, STMXCSR, EMMS, VZEROUPPER, VZEROALL. (save_state.cc has FXSAVE.)

#include "machine/insn/sse_common.h"
#include "machine/insn/x87_stack.h"

namespace clew::machine {
namespace {

template <class D>
void Ldmxcsr(Cpu<D>& cpu, const Insn& insn) {
  const uint32_t value =
      cpu.d().Concretise(cpu.template Read<uint32_t>(insn, insn.op[0]));
  if (cpu.faulted()) {
    return;
  }
  if ((value & ~kMxcsrBits) != 0) {
    cpu.Raise(FaultKind::kGeneral);
    return;
  }
  cpu.regs().mxcsr = value;
}

template <class D>
void Stmxcsr(Cpu<D>& cpu, const Insn& insn) {
  cpu.template Write<uint32_t>(insn, insn.op[0],
                               cpu.d().Const(cpu.regs().mxcsr));
}

template <class D>
void Emms(Cpu<D>& cpu, const Insn&) {
  X87Stack(cpu.regs().x87).LeaveMmx();
}

// The lanes from kLane on of the registers that an encoding without EVEX can
// name. Neither XINUSE[5] nor XINUSE[7] changes.
template <class D, unsigned kLane>
void ClearRegisters(Cpu<D>& cpu, const Insn&) {
  for (unsigned number = 0; number < kLowVecRegisters; ++number) {
    cpu.ClearLanes(number, kLane);
  }
  cpu.regs().avx_in_use = false;
  cpu.regs().zmm_in_use = false;
}

}  // namespace

template <class D>
void RegisterSseState(HandlerTable<D>& table) {
  AddVec<D>(table, "vldmxcsr", SelectFormless<D, 1, &Ldmxcsr<D>>);
  AddVec<D>(table, "vstmxcsr", SelectFormless<D, 1, &Stmxcsr<D>>);
  table["emms"] = SelectSse<D, &Emms<D>>;
  table["vzeroupper"] = Always<D, &ClearRegisters<D, 1>>;
  table["vzeroall"] = Always<D, &ClearRegisters<D, 0>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterSseState);

}  // namespace clew::machine
