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
Handler<D> SelectMoveWhole(const Insn& insn) {
  if (HasMmx(insn)) {
    return nullptr;
  }
  return ByForm<D, kVecLanes>(insn, []<VecForm kForm>() -> Handler<D> {
    return &MoveWhole<D, kUnaligned, kForm>;
  });
}

// Which half of which operand becomes a half of the destination.
enum class From : uint8_t { kDstLow, kDstHigh, kSrcLow, kSrcHigh };

template <From kFrom, class Halves>
auto Pick(const Halves& dst, const Halves& src) {
  constexpr bool kHigh = kFrom == From::kDstHigh || kFrom == From::kSrcHigh;
  constexpr bool kDst = kFrom == From::kDstLow || kFrom == From::kDstHigh;
  return (kDst ? dst : src)[kHigh ? 1 : 0];
}

// MOVHLPS, MOVLHPS, UNPCKxPD, PUNPCKxQDQ.
template <class D, From kLow, From kHigh>
void MoveHalves(Cpu<D>& cpu, const Insn& insn) {
  const auto src = cpu.template ReadQuads<kSse>(insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  const auto dst = cpu.template ReadQuads<kSse>(insn, insn.op[0]);
  cpu.template WriteQuads<kSse>(insn, insn.op[0],
                                {Pick<kLow>(dst, src), Pick<kHigh>(dst, src)});
}

template <class D>
void Movddup(Cpu<D>& cpu, const Insn& insn) {
  const auto low = cpu.template ReadLow<uint64_t>(insn, insn.op[1]);
  cpu.template WriteQuads<kSse>(insn, insn.op[0], {low, low});
}

// A scalar into an XMM register, the rest cleared: MOVD, MOVQ, and MOVSS and
// MOVSD from memory.
template <class D, class U>
void MoveScalarIn(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template ReadLow<U>(insn, insn.op[1]);
  cpu.template WriteQuads<kSse>(
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

// MOVLPS, MOVHPS: one half from or to memory.
template <class D, unsigned kHalf>
void MoveHalfIn(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template Read<uint64_t>(insn, insn.op[1]);
  if (!cpu.faulted()) {
    cpu.SetQuad(insn.op[0].reg, kHalf, value);
  }
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
  return insn.op[0].is_vec() ? &MoveHalfIn<D, kHalf> : &MoveHalfOut<D, kHalf>;
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
  return insn.op[0].is_vec() ? &MoveScalarIn<D, U> : &MoveScalar<D, U>;
}

// A store of a general register; the hint is not to cache it.
template <class D>
Handler<D> SelectMovnti(const Insn& insn) {
  return insn.rex_w ? &MoveScalar<D, uint64_t> : &MoveScalar<D, uint32_t>;
}

template <class D, class U>
Handler<D> SelectMoveFloat(const Insn& insn) {
  return insn.op[0].is_vec() && insn.op[1].is_mem() ? &MoveScalarIn<D, U>
                                                    : &MoveScalar<D, U>;
}

// The bytes of op[0] whose mask byte in op[1] has its top bit set, to [rdi].
// (MASKMOVQ: an MMX register has no bytes above the eighth.)
template <class D>
void MoveMasked(Cpu<D>& cpu, const Insn& insn) {
  const auto bytes = ElementsOf<uint8_t>(cpu.ReadVec(insn, insn.op[0]));
  const auto mask = ElementsOf<uint8_t>(cpu.ReadVec(insn, insn.op[1]));
  const uint64_t addr =
      cpu.LinearAddress(insn, cpu.template GetReg<uint64_t>(8 * kRdi));
  for (unsigned i = 0; i < 16; ++i) {
    if ((mask[i] & 0x80) != 0 && !cpu.CheckStore(addr + i, 1)) {
      return;
    }
  }
  for (unsigned i = 0; i < 16; ++i) {
    if ((mask[i] & 0x80) != 0) {
      cpu.template Store<uint8_t>(addr + i, cpu.d().Const(bytes[i]));
    }
  }
}

template <class D>
Handler<D> SelectMoveMasked(const Insn& insn) {
  if (insn.addr32) {
    return nullptr;
  }
  return HasMmx(insn) ? SelectMmx<D, &MoveMasked<D>>(insn) : &MoveMasked<D>;
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
  return ByForm<D, kVecLanes>(insn, []<VecForm kForm>() -> Handler<D> {
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
  return ByForm<D, kVecLanes>(insn, [&]<VecForm kForm>() -> Handler<D> {
    const Operand& a = insn.op[kForm.first_source()];
    const Operand& b = insn.op[kForm.second_source()];
    return a.is_vec() && b.is_vec() && a.reg == b.reg
               ? &ClearVec<D, kForm>
               : SelectVecLogic<D, VecXor>(insn);
  });
}

template <class D>
void RegisterWholeMoves(HandlerTable<D>& table) {
  for (const char* mnemonic : {"movaps", "movapd", "movdqa", "vmovdqa",
                               "movntdqa", "movntdq", "movntps", "movntpd"}) {
    table[mnemonic] = SelectMoveWhole<D, false>;
  }
  for (const char* mnemonic :
       {"movups", "movupd", "movdqu", "vmovdqu", "lddqu"}) {
    table[mnemonic] = SelectMoveWhole<D, true>;
  }
  table["maskmovdqu"] = SelectMoveMasked<D>;
  table["maskmovq"] = SelectMoveMasked<D>;
}

template <class D>
void RegisterPartialMoves(HandlerTable<D>& table) {
  table["movd"] = SelectMoveInteger<D, uint32_t>;
  table["movq"] = SelectMoveInteger<D, uint64_t>;
  table["movntq"] = SelectMoveMmx<D, uint64_t>;
  table["movdq2q"] = SelectAlwaysMmx<D, &MoveIntoMmx<D, uint64_t>>;
  table["movq2dq"] = SelectAlwaysMmx<D, &MoveScalarIn<D, uint64_t>>;
  table["movnti"] = SelectMovnti<D>;
  table["movss"] = SelectMoveFloat<D, uint32_t>;
  table["movsd"] = SelectMoveFloat<D, uint64_t>;
  table["movlps"] = SelectMoveHalf<D, 0>;
  table["movlpd"] = SelectMoveHalf<D, 0>;
  table["movhps"] = SelectMoveHalf<D, 1>;
  table["movhpd"] = SelectMoveHalf<D, 1>;
  table["movddup"] = SelectSse<D, &Movddup<D>>;
}

template <class D>
void RegisterHalfMoves(HandlerTable<D>& table) {
  const auto lows = SelectSse<D, &MoveHalves<D, From::kDstLow, From::kSrcLow>>;
  const auto highs =
      SelectSse<D, &MoveHalves<D, From::kDstHigh, From::kSrcHigh>>;
  table["movlhps"] = lows;
  table["unpcklpd"] = lows;
  table["punpcklqdq"] = lows;
  table["unpckhpd"] = highs;
  table["punpckhqdq"] = highs;
  table["movhlps"] =
      SelectSse<D, &MoveHalves<D, From::kSrcHigh, From::kDstHigh>>;
}

template <class D>
void RegisterVecLogic(HandlerTable<D>& table) {
  for (const char* mnemonic : {"pand", "andps", "andpd"}) {
    table[mnemonic] = SelectVecLogic<D, VecAnd>;
  }
  for (const char* mnemonic : {"pandn", "andnps", "andnpd"}) {
    table[mnemonic] = SelectVecLogic<D, VecAndNot>;
  }
  for (const char* mnemonic : {"por", "orps", "orpd"}) {
    table[mnemonic] = SelectVecLogic<D, VecOr>;
  }
  for (const char* mnemonic : {"pxor", "vpxor", "xorps", "xorpd"}) {
    table[mnemonic] = SelectVecXor<D>;
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
