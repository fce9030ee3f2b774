// Moves of vector and MMX registers, whole, by halves and by scalars, and
// bitwise logic. But for MMX registers, they carry a shadow.

#include "machine/insn/sse_common.h"

namespace clew::machine {
namespace {

// MOVAPS, MOVUPS and their kin.
template <class D, bool kUnaligned, VecForm kForm>
void MoveWhole(Cpu<D>& cpu, const Insn& insn) {
  const auto value =
      cpu.template ReadQuads<kForm>(insn, insn.op[1], kUnaligned);
  cpu.template WriteQuads<kForm>(insn, insn.op[0], value, kUnaligned);
}

template <class D, bool kUnaligned>
constexpr Selector<D> kMoveWhole =
    SelectByForm<D, kVex256.lanes, []<VecForm kForm>() -> Handler<D> {
      return &MoveWhole<D, kUnaligned, kForm>;
    }>;

// Which half of which operand becomes a half of the destination.
enum class From : uint8_t { kDstLow, kDstHigh, kSrcLow, kSrcHigh };

// The quadword's index in a lane of the one or the other.
template <From kFrom, class Quads>
auto Pick(const Quads& dst, const Quads& src, unsigned lane) {
  constexpr bool kHigh = kFrom == From::kDstHigh || kFrom == From::kSrcHigh;
  constexpr bool kDst = kFrom == From::kDstLow || kFrom == From::kDstHigh;
  return (kDst ? dst : src)[2 * lane + (kHigh ? 1 : 0)];
}

// MOVHLPS, MOVLHPS, UNPCKxPD, PUNPCKxQDQ.
template <class D, From kLow, From kHigh, VecForm kForm>
void MoveHalves(Cpu<D>& cpu, const Insn& insn) {
  const auto src =
      cpu.template ReadQuads<kForm>(insn, insn.op[kForm.second_source()]);
  if (cpu.faulted()) {
    return;
  }
  const auto dst =
      cpu.template ReadQuads<kForm>(insn, insn.op[kForm.first_source()]);
  auto value = dst;
  for (unsigned lane = 0; lane < kForm.lanes; ++lane) {
    value[2 * lane] = Pick<kLow>(dst, src, lane);
    value[2 * lane + 1] = Pick<kHigh>(dst, src, lane);
  }
  cpu.template WriteQuads<kForm>(insn, insn.op[0], value);
}

template <class D, unsigned kVexLanes, From kLow, From kHigh>
constexpr Selector<D> kMoveHalves =
    SelectByForm<D, kVexLanes, []<VecForm kForm>() -> Handler<D> {
      return &MoveHalves<D, kLow, kHigh, kForm>;
    }>;

// The low half of each lane; of memory that is one lane, no more than it.
template <class D, VecForm kForm>
void Movddup(Cpu<D>& cpu, const Insn& insn) {
  typename Cpu<D>::template Quads<kForm> value;
  if constexpr (kForm.lanes == 1) {
    value[0] = cpu.template ReadLow<uint64_t>(insn, insn.op[1]);
  } else {
    value = cpu.template ReadQuads<kForm>(insn, insn.op[1]);
  }
  for (unsigned i = 1; i < value.size(); i += 2) {
    value[i] = value[i - 1];
  }
  cpu.template WriteQuads<kForm>(insn, insn.op[0], value);
}

// A scalar into an XMM register, the rest cleared: MOVD, MOVQ, and MOVSS and
// MOVSD from memory.
template <class D, class U, VecForm kForm>
void MoveScalarIn(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template ReadLow<U>(insn, insn.op[1]);
  cpu.template WriteQuads<kForm>(
      insn, insn.op[0],
      {cpu.d().template ZExt<uint64_t, U>(value), cpu.d().Const(uint64_t{0})});
}

// A scalar out of an XMM register, to memory or a general register; or into the
// low element of an XMM register, the rest kept (MOVSS, MOVSD).
template <class D, class U>
void MoveScalar(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template ReadLow<U>(insn, insn.op[1]);
  if (!cpu.faulted()) {
    cpu.template WriteLow<U>(insn, insn.op[0], value);
  }
}

// VMOVSS and VMOVSD between registers: the low element of the one, the rest of
// the other.
template <class D, class U>
void MergeScalar(Cpu<D>& cpu, const Insn& insn) {
  const auto low = cpu.template ReadLow<U>(insn, insn.op[2]);
  auto value = cpu.template ReadQuads<kVex128>(insn, insn.op[1]);
  value[0] = cpu.template WithLow<U>(value[0], low);
  cpu.template WriteQuads<kVex128>(insn, insn.op[0], value);
}

// MOVLPS, MOVHPS: one half from or to memory.
template <class D, unsigned kHalf, VecForm kForm>
void MoveHalfIn(Cpu<D>& cpu, const Insn& insn) {
  ReplaceHalf<kForm>(cpu, insn, kHalf);
}

// MOVD and MOVQ into an MMX register, and MOVDQ2Q.
template <class D, class U>
void MoveIntoMmx(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template ReadLow<U>(insn, insn.op[1]);
  if (!cpu.faulted()) {
    cpu.SetMmx(insn.op[0].reg, cpu.d().template ZExt<uint64_t, U>(value));
  }
}

template <class D, unsigned kHalf>
void MoveHalfOut(Cpu<D>& cpu, const Insn& insn) {
  cpu.template Write<uint64_t>(insn, insn.op[0],
                               cpu.GetQuad(insn.op[1].reg, kHalf));
}

template <class D, unsigned kHalf>
Handler<D> SelectMoveHalf(const Insn& insn) {
  return ByForm<D, 1>(insn, [&]<VecForm kForm>() -> Handler<D> {
    return insn.op[0].is_vec() ? &MoveHalfIn<D, kHalf, kForm>
                               : &MoveHalfOut<D, kHalf>;
  });
}

template <class D, class U>
Handler<D> SelectMoveMmx(const Insn& insn) {
  return insn.op[0].is_mmx() ? SelectMmx<D, &MoveIntoMmx<D, U>>(insn)
                             : SelectMmx<D, &MoveScalar<D, U>>(insn);
}

// MOVD and MOVQ: the width is that of the general register or memory. With
// REX.W the decoder calls the one from or to an MMX register MOVD, too.
template <class D, class U>
Handler<D> SelectMoveInteger(const Insn& insn) {
  if (HasMmx(insn)) {
    return insn.rex_w ? SelectMoveMmx<D, uint64_t>(insn)
                      : SelectMoveMmx<D, U>(insn);
  }
  return ByForm<D, 1>(insn, [&]<VecForm kForm>() -> Handler<D> {
    return insn.op[0].is_vec() ? &MoveScalarIn<D, U, kForm> : &MoveScalar<D, U>;
  });
}

// A store of a general register; the hint is not to cache it.
template <class D>
Handler<D> SelectMovnti(const Insn& insn) {
  return insn.rex_w ? &MoveScalar<D, uint64_t> : &MoveScalar<D, uint32_t>;
}

template <class D, class U>
Handler<D> SelectMoveFloat(const Insn& insn) {
  return ByForm<D, 1>(insn, [&]<VecForm kForm>() -> Handler<D> {
    if (insn.op[0].is_mem()) {
      return &MoveScalar<D, U>;
    }
    if (insn.op[1].is_mem()) {
      return &MoveScalarIn<D, U, kForm>;
    }
    return kForm.vex ? &MergeScalar<D, U> : &MoveScalar<D, U>;
  });
}

// The bytes of op[0] whose mask byte in op[1] has its top bit set, to [rdi].
// (MASKMOVQ: an MMX register has no bytes above the eighth.)
template <class D>
void MoveMasked(Cpu<D>& cpu, const Insn& insn) {
  const auto bytes = ElementsOf<uint8_t>(cpu.ReadVec(insn, insn.op[0]));
  const auto selected = Selected<uint8_t>(cpu.ReadVec(insn, insn.op[1]));
  const uint64_t addr =
      cpu.LinearAddress(insn, cpu.template GetReg<uint64_t>(8 * kRdi));
  StoreSelected<uint8_t>(cpu, addr, selected, bytes);
}

template <class D>
Handler<D> SelectMoveMasked(const Insn& insn) {
  if (insn.addr32) {
    return nullptr;
  }
  return HasMmx(insn) ? SelectMmx<D, &MoveMasked<D>>(insn)
                      : SelectFormless<D, 1, &MoveMasked<D>>(insn);
}

struct VecAnd {
  template <class D, class V>
  static V Apply(D& d, const V& a, const V& b) {
    return d.template And<uint64_t>(a, b);
  }
};
struct VecAndNot {
  template <class D, class V>
  static V Apply(D& d, const V& a, const V& b) {
    return d.template And<uint64_t>(d.template Not<uint64_t>(a), b);
  }
};
struct VecOr {
  template <class D, class V>
  static V Apply(D& d, const V& a, const V& b) {
    return d.template Or<uint64_t>(a, b);
  }
};
struct VecXor {
  template <class D, class V>
  static V Apply(D& d, const V& a, const V& b) {
    return d.template Xor<uint64_t>(a, b);
  }
};

template <class D, class Op, VecForm kForm>
void VecLogic(Cpu<D>& cpu, const Insn& insn) {
  const auto b =
      cpu.template ReadQuads<kForm>(insn, insn.op[kForm.second_source()]);
  if (cpu.faulted()) {
    return;
  }
  auto value =
      cpu.template ReadQuads<kForm>(insn, insn.op[kForm.first_source()]);
  for (unsigned i = 0; i < value.size(); ++i) {
    value[i] = Op::Apply(cpu.d(), value[i], b[i]);
  }
  cpu.template WriteQuads<kForm>(insn, insn.op[0], value);
}

// Of MMX registers.
template <class D, class Op>
void MmxLogic(Cpu<D>& cpu, const Insn& insn) {
  const auto src = cpu.template ReadLow<uint64_t>(insn, insn.op[1]);
  if (!cpu.faulted()) {
    const auto dst = cpu.GetMmx(insn.op[0].reg);
    cpu.SetMmx(insn.op[0].reg, Op::Apply(cpu.d(), dst, src));
  }
}

template <class D, class Op>
Handler<D> SelectVecLogic(const Insn& insn) {
  if (HasMmx(insn)) {
    return SelectMmx<D, &MmxLogic<D, Op>>(insn);
  }
  return ByForm<D, kVex256.lanes>(insn, []<VecForm kForm>() -> Handler<D> {
    return &VecLogic<D, Op, kForm>;
  });
}

// PXOR of a register with itself is how it is cleared, whatever it held.
template <class D, VecForm kForm>
void ClearVec(Cpu<D>& cpu, const Insn& insn) {
  cpu.template WriteLanes<kForm>(insn, insn.op[0], {});
}

template <class D>
Handler<D> SelectVecXor(const Insn& insn) {
  return ByForm<D, kVex256.lanes>(insn, [&]<VecForm kForm>() -> Handler<D> {
    const Operand& a = insn.op[kForm.first_source()];
    const Operand& b = insn.op[kForm.second_source()];
    return a.is_vec() && b.is_vec() && a.reg == b.reg
               ? &ClearVec<D, kForm>
               : SelectVecLogic<D, VecXor>(insn);
  });
}

template <class D>
void RegisterWholeMoves(HandlerTable<D>& table) {
  for (const char* vex : {"vmovaps", "vmovapd", "vmovdqa", "vmovntdqa",
                          "vmovntdq", "vmovntps", "vmovntpd"}) {
    AddVec<D>(table, vex, kMoveWhole<D, false>);
  }
  for (const char* vex : {"vmovups", "vmovupd", "vmovdqu", "vlddqu"}) {
    AddVec<D>(table, vex, kMoveWhole<D, true>);
  }
  AddVec<D>(table, "vmaskmovdqu", SelectMoveMasked<D>);
  table["maskmovq"] = SelectMoveMasked<D>;
}

template <class D>
void RegisterPartialMoves(HandlerTable<D>& table) {
  AddVec<D>(table, "vmovd", SelectMoveInteger<D, uint32_t>);
  AddVec<D>(table, "vmovq", SelectMoveInteger<D, uint64_t>);
  table["movntq"] = SelectMoveMmx<D, uint64_t>;
  table["movdq2q"] = SelectAlwaysMmx<D, &MoveIntoMmx<D, uint64_t>>;
  table["movq2dq"] = SelectAlwaysMmx<D, &MoveScalarIn<D, uint64_t, kSse>>;
  table["movnti"] = SelectMovnti<D>;
  AddVec<D>(table, "vmovss", SelectMoveFloat<D, uint32_t>);
  AddVec<D>(table, "vmovsd", SelectMoveFloat<D, uint64_t>);
  AddVec<D>(table, "vmovlps", SelectMoveHalf<D, 0>);
  AddVec<D>(table, "vmovlpd", SelectMoveHalf<D, 0>);
  AddVec<D>(table, "vmovhps", SelectMoveHalf<D, 1>);
  AddVec<D>(table, "vmovhpd", SelectMoveHalf<D, 1>);
  AddVec<D>(table, "vmovddup",
            SelectByForm<D, 2, []<VecForm kForm>() -> Handler<D> {
              return &Movddup<D, kForm>;
            }>);
}

template <class D>
void RegisterHalfMoves(HandlerTable<D>& table) {
  for (const char* vex : {"vunpcklpd", "vpunpcklqdq"}) {
    AddVec<D>(table, vex, kMoveHalves<D, 2, From::kDstLow, From::kSrcLow>);
  }
  for (const char* vex : {"vunpckhpd", "vpunpckhqdq"}) {
    AddVec<D>(table, vex, kMoveHalves<D, 2, From::kDstHigh, From::kSrcHigh>);
  }
  AddVec<D>(table, "vmovlhps", kMoveHalves<D, 1, From::kDstLow, From::kSrcLow>);
  AddVec<D>(table, "vmovhlps",
            kMoveHalves<D, 1, From::kSrcHigh, From::kDstHigh>);
}

template <class D>
void RegisterVecLogic(HandlerTable<D>& table) {
  for (const char* vex : {"vpand", "vandps", "vandpd"}) {
    AddVec<D>(table, vex, SelectVecLogic<D, VecAnd>);
  }
  for (const char* vex : {"vpandn", "vandnps", "vandnpd"}) {
    AddVec<D>(table, vex, SelectVecLogic<D, VecAndNot>);
  }
  for (const char* vex : {"vpor", "vorps", "vorpd"}) {
    AddVec<D>(table, vex, SelectVecLogic<D, VecOr>);
  }
  for (const char* vex : {"vpxor", "vxorps", "vxorpd"}) {
    AddVec<D>(table, vex, SelectVecXor<D>);
  }
}

}  // namespace

template <class D>
void RegisterSseMove(HandlerTable<D>& table) {
  RegisterWholeMoves(table);
  RegisterPartialMoves(table);
  RegisterHalfMoves(table);
  RegisterVecLogic(table);
}

CLEW_INSTANTIATE_FAMILY(RegisterSseMove);

}  // namespace clew::machine
