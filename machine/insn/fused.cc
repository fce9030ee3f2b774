// FMA and F16C.

#include "machine/vector/fused.h"

#include "machine/insn/sse_common.h"

namespace clew::machine {
namespace {

// op[0] = kOp(op[0], op[1], op[2]) in each lane.
template <class D, VecOp kOp, unsigned kBytes, VecForm kForm>
void FusedInsn(Cpu<D>& cpu, const Insn& insn) {
  ThreeSources<kOp, kBytes, kForm>(cpu, insn, insn.op[0], insn.op[2],
                                   insn.op[1]);
}

template <class D, VecOp kOp, unsigned kBytes, unsigned kVexLanes>
constexpr Selector<D> kFused =
    SelectVex<D, kVexLanes, []<VecForm kForm>() -> Handler<D> {
      return &FusedInsn<D, kOp, kBytes, kForm>;
    }>;

// VCVTPS2PH: half as many bytes as the vector length has go to a register, the
// rest of which is cleared, or to memory.
template <class D, VecForm kForm>
void ToHalfPrecision(Cpu<D>& cpu, const Insn& insn) {
  const auto src = cpu.template ReadLanes<kForm>(insn, insn.op[1]);
  VecState state = StateFor(cpu, insn);
  Vec128 value;
  for (unsigned lane = 0; lane < kForm.lanes; ++lane) {
    Vec128 half;
    Vcvtps2ph(half, src[lane], state);
    value.q[lane] = half.q[0];
  }
  if (kForm.lanes == 1 && insn.op[0].is_mem()) {
    cpu.template Write<uint64_t>(insn, insn.op[0], cpu.d().Const(value.q[0]));
  } else {
    cpu.template WriteLanes<kVex128>(insn, insn.op[0], {value});
  }
  // Intel's CPUs (Sapphire Rapids) note exceptions though the store faults.
  if (!cpu.faulted() || cpu.regs().is_of_intel()) {
    cpu.regs().mxcsr = state.mxcsr;
  }
}

}  // namespace

template <class D>
void RegisterFused(HandlerTable<D>& table) {
#define CLEW_REGISTER(Name, mnemonic, bytes, vex_lanes) \
  table[mnemonic] = kFused<D, Name, bytes, vex_lanes>;
  CLEW_VECTOR_FUSED_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
  table["vcvtph2ps"] = SelectVec<D, Vcvtph2ps, 8, false, 2>;
  table["vcvtps2ph"] = SelectVex<D, 2, []<VecForm kForm>() -> Handler<D> {
    return &ToHalfPrecision<D, kForm>;
  }>;
}

CLEW_INSTANTIATE_FAMILY(RegisterFused);

}  // namespace clew::machine
