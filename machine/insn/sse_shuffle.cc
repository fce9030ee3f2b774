// Shuffles, blends, insertions and extractions, bit masks.

#include "machine/insn/sse_common.h"
#include "machine/vector/shuffle.h"

namespace clew::machine {
namespace {

// XMM0 selects; of a VEX form, a fourth operand does.
template <class D, VecOp kOp, VecForm kForm>
void BlendByMask(Cpu<D>& cpu, const Insn& insn) {
  ThreeSources<kOp, kLaneBytes, kForm>(cpu, insn, insn.op[kForm.first_source()],
                                       insn.op[kForm.second_source()],
                                       kForm.vex ? insn.op[3] : kXmm0);
}

template <class D, VecOp kOp>
constexpr Selector<D> kBlendByMask =
    SelectByForm<D, 2, []<VecForm kForm>() -> Handler<D> {
      return &BlendByMask<D, kOp, kForm>;
    }>;

// A memory source has one element: the selecting bits do not count.
template <class D, VecForm kForm>
void InsertpsFromMemory(Cpu<D>& cpu, const Insn& insn) {
  const Vec128 src =
      ReadLane<kForm, 4>(cpu, insn, insn.op[kForm.second_source()]);
  if (cpu.faulted()) {
    return;
  }
  auto dst = cpu.template ReadLanes<kForm>(insn, insn.op[kForm.first_source()]);
  VecState state = StateFor(cpu, insn);
  state.imm &= 0x3f;
  Insertps(dst[0], src, state);
  cpu.template WriteLanes<kForm>(insn, insn.op[0], dst);
}

template <class D>
Handler<D> SelectInsertps(const Insn& insn) {
  return ByForm<D, 1>(insn, [&]<VecForm kForm>() -> Handler<D> {
    return insn.op[kForm.second_source()].is_mem()
               ? &InsertpsFromMemory<D, kForm>
               : &VecInsn<D, Insertps, 16, true, kForm>;
  });
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

template <class D, VecForm kForm>
void Pinsrq(Cpu<D>& cpu, const Insn& insn) {
  ReplaceHalf<kForm>(cpu, insn, insn.imm & 1);
}

// Of a lane, kBits.
template <class D, VecToGprOp kOp, unsigned kBits>
Handler<D> SelectMask(const Insn& insn) {
  return ByForm<D, 2>(insn, [&]<VecForm kForm>() -> Handler<D> {
    return insn.op[1].is_vec() ? &ToGprInsn<D, kOp, 16, kForm, kBits> : nullptr;
  });
}

template <class D>
Handler<D> SelectPmovmskb(const Insn& insn) {
  return insn.op[1].is_mmx() ? SelectMmx<D, &ToGprInsn<D, Pmovmskb, 8>>(insn)
                             : SelectMask<D, Pmovmskb, 16>(insn);
}

template <class D>
Handler<D> SelectPextrw(const Insn& insn) {
  return insn.op[1].is_mmx()
             ? SelectMmx<D, &ExtractInsn<D, mmx::Pextrw, uint16_t>>(insn)
             : SelectFormless<D, 1, &ExtractInsn<D, Pextrw, uint16_t>>(insn);
}

}  // namespace

template <class D>
void RegisterSseShuffle(HandlerTable<D>& table) {
  AddVec<D>(table, "vpshufd", SelectVec<D, Pshufd, 16, false, 2>);
  AddVec<D>(table, "vpshuflw", SelectVec<D, Pshuflw, 16, false, 2>);
  AddVec<D>(table, "vpshufhw", SelectVec<D, Pshufhw, 16, false, 2>);
  AddVec<D>(table, "vshufps", SelectVec<D, Shufps, 16, true, 2>);
  AddVec<D>(table, "vshufpd", SelectVec<D, Shufpd, 16, true, 2, 2>);
  table["pshufw"] = SelectMmx<D, &VecInsn<D, Pshuflw, 8, false>>;
  AddVec<D>(table, "vpalignr",
            SelectVecOrMmx<D, Palignr, 16, mmx::Palignr, 8, true, 2>);
  AddVec<D>(table, "vblendps", SelectVec<D, Blendps, 16, true, 2, 4>);
  AddVec<D>(table, "vblendpd", SelectVec<D, Blendpd, 16, true, 2, 2>);
  AddVec<D>(table, "vpblendw", SelectVec<D, Pblendw, 16, true, 2>);
  AddVec<D>(table, "vmpsadbw", SelectVec<D, Mpsadbw, 16, true, 2, 3>);
  AddVec<D>(table, "vblendvps", kBlendByMask<D, Blendvps>);
  AddVec<D>(table, "vblendvpd", kBlendByMask<D, Blendvpd>);
  AddVec<D>(table, "vpblendvb", kBlendByMask<D, Pblendvb>);
  AddVec<D>(table, "vinsertps", SelectInsertps<D>);
  AddVec<D>(table, "vpinsrb", SelectVec<D, Pinsrb, 1, true, 1>);
  AddVec<D>(table, "vpinsrw",
            SelectVecOrMmx<D, Pinsrw, 2, mmx::Pinsrw, 2, true, 1>);
  AddVec<D>(table, "vpinsrd", SelectVec<D, Pinsrd, 4, true, 1>);
  AddVec<D>(table, "vpinsrq",
            SelectByForm<D, 1, []<VecForm kForm>() -> Handler<D> {
              return &Pinsrq<D, kForm>;
            }>);
  AddVec<D>(table, "vpextrb",
            SelectFormless<D, 1, &ExtractInsn<D, Pextrb, uint8_t>>);
  AddVec<D>(table, "vpextrw", SelectPextrw<D>);
  for (const char* vex : {"vpextrd", "vextractps"}) {
    AddVec<D>(table, vex,
              SelectFormless<D, 1, &ExtractInsn<D, Pextrd, uint32_t>>);
  }
  AddVec<D>(table, "vpextrq", SelectFormless<D, 1, &Pextrq<D>>);
  AddVec<D>(table, "vpmovmskb", SelectPmovmskb<D>);
  AddVec<D>(table, "vmovmskps", SelectMask<D, Movmskps, 4>);
  AddVec<D>(table, "vmovmskpd", SelectMask<D, Movmskpd, 2>);
}

CLEW_INSTANTIATE_FAMILY(RegisterSseShuffle);

}  // namespace clew::machine
