// Integer arithmetic, comparison, packing and shifts on vector and MMX
// registers; PTEST.

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

// By a register of its own kind or memory, or by an immediate.
template <class D, VecOp kByVec, VecOp kByImm, VecOp kMmxByVec, VecOp kMmxByImm>
Handler<D> SelectShift(const Insn& insn) {
  if (insn.op[1].is_imm()) {
    return insn.op[0].is_mmx() ? SelectMmx<D, &ShiftByImm<D, kMmxByImm>>(insn)
                               : &ShiftByImm<D, kByImm>;
  }
  return SelectVecOrMmx<D, kByVec, 16, kMmxByVec, 8, true>(insn);
}

template <class D, VecOp kOp>
Handler<D> SelectByteShift(const Insn& insn) {
  return insn.op[0].is_vec() ? &ShiftByImm<D, kOp> : nullptr;
}

}  // namespace

template <class D>
void RegisterSseInteger(HandlerTable<D>& table) {
#define CLEW_REGISTER(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  AddVec<D>(table, mnemonic, "v" mnemonic,                         \
            SelectVec<D, Name, bytes, reads_dst, vex_lanes>);
  CLEW_VECTOR_XMM_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
#define CLEW_REGISTER(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  AddVec<D>(                                                       \
      table, mnemonic, "v" mnemonic,                               \
      SelectVecOrMmx<D, Name, bytes, mmx::Name, 8, reads_dst, vex_lanes>);
  CLEW_VECTOR_MMX_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
#define CLEW_REGISTER(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  AddVec<D>(                                                       \
      table, mnemonic, "v" mnemonic,                               \
      SelectVecOrMmx<D, Name, bytes, mmx::Name, 4, reads_dst, vex_lanes>);
  CLEW_VECTOR_MMX_LOW_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
#define CLEW_REGISTER(mnemonic, Name) \
  table[mnemonic] = SelectShift<D, Name, Name##Imm, mmx::Name, mmx::Name##Imm>;
  CLEW_REGISTER("psllw", Psllw)
  CLEW_REGISTER("pslld", Pslld)
  CLEW_REGISTER("psllq", Psllq)
  CLEW_REGISTER("psrlw", Psrlw)
  CLEW_REGISTER("psrld", Psrld)
  CLEW_REGISTER("psrlq", Psrlq)
  CLEW_REGISTER("psraw", Psraw)
  CLEW_REGISTER("psrad", Psrad)
#undef CLEW_REGISTER
  table["pslldq"] = SelectByteShift<D, Pslldq>;
  table["psrldq"] = SelectByteShift<D, Psrldq>;
  table["ptest"] = SelectSse<D, &ToFlagsInsn<D, Ptest, 16>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterSseInteger);

}  // namespace clew::machine
