// Integer arithmetic, comparison, packing and shifts on XMM registers; PTEST.

#include "machine/insn/sse_common.h"
#include "machine/vector/integer.h"
#include "machine/vector/shuffle.h"

namespace clew::machine {
namespace {

template <class D, VecOp kOp>
void ShiftByImm(Cpu<D>& cpu, const Insn& insn) {
  Vec128 value = cpu.ReadVec(insn, insn.op[0]);
  VecState state = StateFor(cpu, insn);
  kOp(value, Vec128{}, state);
  cpu.WriteVec(insn, insn.op[0], value);
}

// By an XMM register or memory, or by an immediate.
template <class D, VecOp kByVec, VecOp kByImm>
Handler<D> SelectShift(const Insn& insn) {
  if (insn.op[0].is_xmm() && insn.op[1].is_imm()) {
    return &ShiftByImm<D, kByImm>;
  }
  return SelectVec<D, kByVec, 16, true>(insn);
}

template <class D, VecOp kOp>
Handler<D> SelectByteShift(const Insn& insn) {
  return insn.op[0].is_xmm() ? &ShiftByImm<D, kOp> : nullptr;
}

}  // namespace

template <class D>
void RegisterSseInteger(HandlerTable<D>& table) {
#define CLEW_REGISTER(Name, mnemonic, bytes, reads_dst) \
  table[mnemonic] = SelectVec<D, Name, bytes, reads_dst>;
  CLEW_VECTOR_INTEGER_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
  table["psllw"] = SelectShift<D, Psllw, PsllwImm>;
  table["pslld"] = SelectShift<D, Pslld, PslldImm>;
  table["psllq"] = SelectShift<D, Psllq, PsllqImm>;
  table["psrlw"] = SelectShift<D, Psrlw, PsrlwImm>;
  table["psrld"] = SelectShift<D, Psrld, PsrldImm>;
  table["psrlq"] = SelectShift<D, Psrlq, PsrlqImm>;
  table["psraw"] = SelectShift<D, Psraw, PsrawImm>;
  table["psrad"] = SelectShift<D, Psrad, PsradImm>;
  table["pslldq"] = SelectByteShift<D, Pslldq>;
  table["psrldq"] = SelectByteShift<D, Psrldq>;
  table["ptest"] = SelectSse<D, &ToFlagsInsn<D, Ptest, 16>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterSseInteger);

}  // namespace clew::machine
