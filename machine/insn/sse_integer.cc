// Integer arithmetic, comparison, packing and shifts on vector and MMX
// registers; PTEST.

#include "machine/insn/sse_common.h"
#include "machine/vector/integer.h"
#include "machine/vector/shuffle.h"

namespace clew::machine {
namespace {

template <class D, VecOp kOp, VecForm kForm>
void ShiftByImm(Cpu<D>& cpu, const Insn& insn) {
  auto value =
      cpu.template ReadLanes<kForm>(insn, insn.op[kForm.first_source()]);
  VecState state = StateFor(cpu, insn);
  for (Vec128& lane : value) {
    kOp(lane, Vec128{}, state);
  }
  cpu.template WriteLanes<kForm>(insn, insn.op[0], value);
}

// The count is 128 bits, for every lane the same.
template <class D, VecOp kOp, VecForm kForm>
void ShiftByVec(Cpu<D>& cpu, const Insn& insn) {
  const Vec128 count =
      ReadLane<kForm, 16>(cpu, insn, insn.op[kForm.second_source()]);
  if (cpu.faulted()) {
    return;
  }
  auto value =
      cpu.template ReadLanes<kForm>(insn, insn.op[kForm.first_source()]);
  VecState state = StateFor(cpu, insn);
  for (Vec128& lane : value) {
    kOp(lane, count, state);
  }
  cpu.template WriteLanes<kForm>(insn, insn.op[0], value);
}

// By a register of its own kind or memory, or by an immediate.
template <class D, VecOp kByVec, VecOp kByImm, VecOp kMmxByVec, VecOp kMmxByImm>
Handler<D> SelectShift(const Insn& insn) {
  if (insn.op[0].is_mmx()) {
    return insn.op[1].is_imm()
               ? SelectMmx<D, &ShiftByImm<D, kMmxByImm, kSse>>(insn)
               : SelectMmx<D, &VecInsn<D, kMmxByVec, 8, true>>(insn);
  }
  return ByForm<D, 2>(insn, [&]<VecForm kForm>() -> Handler<D> {
    return insn.op[kForm.second_source()].is_imm()
               ? &ShiftByImm<D, kByImm, kForm>
               : &ShiftByVec<D, kByVec, kForm>;
  });
}

template <class D, VecOp kOp>
constexpr Selector<D> kByteShift =
    SelectByForm<D, 2, []<VecForm kForm>() -> Handler<D> {
      return &ShiftByImm<D, kOp, kForm>;
    }>;

}  // namespace

template <class D>
void RegisterSseInteger(HandlerTable<D>& table) {
#define CLEW_REGISTER(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  AddVec<D>(table, "v" mnemonic,                                   \
            SelectVec<D, Name, bytes, reads_dst, vex_lanes>);
  CLEW_VECTOR_XMM_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
#define CLEW_REGISTER(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  AddVec<D>(                                                       \
      table, "v" mnemonic,                                         \
      SelectVecOrMmx<D, Name, bytes, mmx::Name, 8, reads_dst, vex_lanes>);
  CLEW_VECTOR_MMX_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
#define CLEW_REGISTER(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  AddVec<D>(                                                       \
      table, "v" mnemonic,                                         \
      SelectVecOrMmx<D, Name, bytes, mmx::Name, 4, reads_dst, vex_lanes>);
  CLEW_VECTOR_MMX_LOW_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
#define CLEW_REGISTER(mnemonic, Name) \
  AddVec<D>(table, "v" mnemonic,      \
            SelectShift<D, Name, Name##Imm, mmx::Name, mmx::Name##Imm>);
  CLEW_REGISTER("psllw", Psllw)
  CLEW_REGISTER("pslld", Pslld)
  CLEW_REGISTER("psllq", Psllq)
  CLEW_REGISTER("psrlw", Psrlw)
  CLEW_REGISTER("psrld", Psrld)
  CLEW_REGISTER("psrlq", Psrlq)
  CLEW_REGISTER("psraw", Psraw)
  CLEW_REGISTER("psrad", Psrad)
#undef CLEW_REGISTER
  AddVec<D>(table, "vpslldq", kByteShift<D, Pslldq>);
  AddVec<D>(table, "vpsrldq", kByteShift<D, Psrldq>);
  AddVec<D>(table, "vptest", kToFlags<D, Ptest, 16, 2>);
}

CLEW_INSTANTIATE_FAMILY(RegisterSseInteger);

}  // namespace clew::machine
