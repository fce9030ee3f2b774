// Shuffles, blends, insertions and extractions, bit masks.

#include "machine/insn/sse_common.h"
#include "machine/vector/shuffle.h"

namespace clew::machine {
namespace {

// xmm0 selects.
template <class D, VecOp kOp>
void BlendByXmm0(Cpu<D>& cpu, const Insn& insn) {
  const Vec128 src = cpu.ReadVec(insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  Vec128 dst = cpu.ReadVec(insn, insn.op[0]);
  VecState state = StateFor(cpu, insn);
  state.mask = cpu.ReadVec(insn, Operand{OperandKind::kVec, 16, 0});
  kOp(dst, src, state);
  cpu.WriteVec(insn, insn.op[0], dst);
}

// A memory source has one element: the selecting bits do not count.
template <class D>
void InsertpsFromMemory(Cpu<D>& cpu, const Insn& insn) {
  const Vec128 src = ReadSource<kSse, 4>(cpu, insn, insn.op[1])[0];
  if (cpu.faulted()) {
    return;
  }
  Vec128 dst = cpu.ReadVec(insn, insn.op[0]);
  VecState state = StateFor(cpu, insn);
  state.imm &= 0x3f;
  Insertps(dst, src, state);
  cpu.WriteVec(insn, insn.op[0], dst);
}

template <class D>
Handler<D> SelectInsertps(const Insn& insn) {
  return insn.op[1].is_mem() ? &InsertpsFromMemory<D>
                             : &VecInsn<D, Insertps, 16, true>;
}

// One element of type U to memory or, zero-extended, to a general register.
template <class D, VecToGprOp kOp, class U>
void ExtractInsn(Cpu<D>& cpu, const Insn& insn) {
  VecState state = StateFor(cpu, insn);
  const auto element =
      static_cast<U>(kOp(cpu.ReadVec(insn, insn.op[1]), state));
  if (insn.op[0].is_mem()) {
    cpu.template Write<U>(insn, insn.op[0], cpu.d().Const(element));
  } else {
    cpu.template SetReg<uint64_t>(insn.op[0].reg,
                                  cpu.d().Const(uint64_t{element}));
  }
}

// PEXTRQ and PINSRQ move a half as it is.
template <class D>
void Pextrq(Cpu<D>& cpu, const Insn& insn) {
  const auto half = cpu.GetQuad(insn.op[1].reg, insn.imm & 1);
  cpu.template Write<uint64_t>(insn, insn.op[0], half);
}

template <class D>
void Pinsrq(Cpu<D>& cpu, const Insn& insn) {
  const auto half = cpu.template Read<uint64_t>(insn, insn.op[1]);
  if (!cpu.faulted()) {
    cpu.SetQuad(insn.op[0].reg, insn.imm & 1, half);
  }
}

template <class D, VecToGprOp kOp>
Handler<D> SelectMask(const Insn& insn) {
  return insn.op[1].is_vec() ? &ToGprInsn<D, kOp, 16> : nullptr;
}

template <class D>
Handler<D> SelectPmovmskb(const Insn& insn) {
  return insn.op[1].is_mmx() ? SelectMmx<D, &ToGprInsn<D, Pmovmskb, 8>>(insn)
                             : SelectMask<D, Pmovmskb>(insn);
}

template <class D>
Handler<D> SelectPextrw(const Insn& insn) {
  return insn.op[1].is_mmx()
             ? SelectMmx<D, &ExtractInsn<D, mmx::Pextrw, uint16_t>>(insn)
             : &ExtractInsn<D, Pextrw, uint16_t>;
}

}  // namespace

template <class D>
void RegisterSseShuffle(HandlerTable<D>& table) {
  table["pshufd"] = SelectVec<D, Pshufd, 16, false>;
  table["pshuflw"] = SelectVec<D, Pshuflw, 16, false>;
  table["pshufhw"] = SelectVec<D, Pshufhw, 16, false>;
  table["shufps"] = SelectVec<D, Shufps, 16, true>;
  table["shufpd"] = SelectVec<D, Shufpd, 16, true>;
  table["pshufw"] = SelectMmx<D, &VecInsn<D, Pshuflw, 8, false>>;
  table["palignr"] = SelectVecOrMmx<D, Palignr, 16, mmx::Palignr, 8, true>;
  table["blendps"] = SelectVec<D, Blendps, 16, true>;
  table["blendpd"] = SelectVec<D, Blendpd, 16, true>;
  table["pblendw"] = SelectVec<D, Pblendw, 16, true>;
  table["mpsadbw"] = SelectVec<D, Mpsadbw, 16, true>;
  table["blendvps"] = SelectSse<D, &BlendByXmm0<D, Blendvps>>;
  table["blendvpd"] = SelectSse<D, &BlendByXmm0<D, Blendvpd>>;
  table["pblendvb"] = SelectSse<D, &BlendByXmm0<D, Pblendvb>>;
  table["insertps"] = SelectInsertps<D>;
  table["pinsrb"] = SelectVec<D, Pinsrb, 1, true>;
  table["pinsrw"] = SelectVecOrMmx<D, Pinsrw, 2, mmx::Pinsrw, 2, true>;
  table["pinsrd"] = SelectVec<D, Pinsrd, 4, true>;
  table["pinsrq"] = SelectSse<D, &Pinsrq<D>>;
  table["pextrb"] = SelectSse<D, &ExtractInsn<D, Pextrb, uint8_t>>;
  table["pextrw"] = SelectPextrw<D>;
  table["pextrd"] = SelectSse<D, &ExtractInsn<D, Pextrd, uint32_t>>;
  table["extractps"] = SelectSse<D, &ExtractInsn<D, Pextrd, uint32_t>>;
  table["pextrq"] = SelectSse<D, &Pextrq<D>>;
  table["pmovmskb"] = SelectPmovmskb<D>;
  table["movmskps"] = SelectMask<D, Movmskps>;
  table["movmskpd"] = SelectMask<D, Movmskpd>;
}

CLEW_INSTANTIATE_FAMILY(RegisterSseShuffle);

}  // namespace clew::machine
