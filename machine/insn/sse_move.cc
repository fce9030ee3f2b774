// Moves of XMM and MMX registers, whole, by halves and by scalars, and bitwise
// logic. But for MMX registers, they carry a shadow.

#include "machine/insn/sse_common.h"

namespace clew::machine {
namespace {

// The two halves of a source: of a register with their shadow.
template <class D>
struct Halves {
  typename D::template V<uint64_t> low;
  typename D::template V<uint64_t> high;
};

template <class D>
Halves<D> RegisterHalves(Cpu<D>& cpu, const Operand& operand) {
  return {cpu.GetQuad(operand.reg, 0), cpu.GetQuad(operand.reg, 1)};
}

template <class D, bool kUnaligned = false>
Halves<D> ReadHalves(Cpu<D>& cpu, const Insn& insn, const Operand& operand) {
  if (operand.is_vec()) {
    return RegisterHalves(cpu, operand);
  }
  const auto value = cpu.ReadHalves(insn, operand, kUnaligned);
  return {value[0], value[1]};
}

template <class D>
void WriteHalves(Cpu<D>& cpu, const Operand& operand, const Halves<D>& value) {
  cpu.SetQuad(operand.reg, 0, value.low);
  cpu.SetQuad(operand.reg, 1, value.high);
}

// MOVAPS, MOVUPS and their kin.
template <class D, bool kUnaligned>
void MoveWhole(Cpu<D>& cpu, const Insn& insn) {
  if (insn.op[0].is_vec()) {
    const auto value = ReadHalves<D, kUnaligned>(cpu, insn, insn.op[1]);
    if (!cpu.faulted()) {
      WriteHalves(cpu, insn.op[0], value);
    }
    return;
  }
  const auto value = cpu.ReadHalves(insn, insn.op[1]);
  cpu.WriteHalves(insn, insn.op[0], value, kUnaligned);
}

// Which half of which operand becomes a half of the destination.
enum class From : uint8_t { kDstLow, kDstHigh, kSrcLow, kSrcHigh };

template <From kFrom, class D>
auto Pick(const Halves<D>& dst, const Halves<D>& src) {
  switch (kFrom) {
    case From::kDstLow:
      return dst.low;
    case From::kDstHigh:
      return dst.high;
    case From::kSrcLow:
      return src.low;
    case From::kSrcHigh:
      return src.high;
  }
}

// MOVHLPS, MOVLHPS, UNPCKxPD, PUNPCKxQDQ.
template <class D, From kLow, From kHigh>
void MoveHalves(Cpu<D>& cpu, const Insn& insn) {
  const auto src = ReadHalves(cpu, insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  const auto dst = RegisterHalves(cpu, insn.op[0]);
  WriteHalves<D>(cpu, insn.op[0],
                 {Pick<kLow>(dst, src), Pick<kHigh>(dst, src)});
}

template <class D>
void Movddup(Cpu<D>& cpu, const Insn& insn) {
  const auto low = cpu.template ReadLow<uint64_t>(insn, insn.op[1]);
  if (!cpu.faulted()) {
    WriteHalves<D>(cpu, insn.op[0], {low, low});
  }
}

// A scalar into an XMM register, the rest cleared: MOVD, MOVQ, and MOVSS and
// MOVSD from memory.
template <class D, class U>
void MoveScalarIn(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template ReadLow<U>(insn, insn.op[1]);
  if (!cpu.faulted()) {
    WriteHalves<D>(cpu, insn.op[0],
                   {cpu.d().template ZExt<uint64_t, U>(value),
                    cpu.d().Const(uint64_t{0})});
  }
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

template <class D, class Op>
void VecLogic(Cpu<D>& cpu, const Insn& insn) {
  const auto src = ReadHalves(cpu, insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  const auto dst = RegisterHalves(cpu, insn.op[0]);
  WriteHalves<D>(cpu, insn.op[0],
                 {Op::Apply(cpu.d(), dst.low, src.low),
                  Op::Apply(cpu.d(), dst.high, src.high)});
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
  return HasMmx(insn) ? SelectMmx<D, &MmxLogic<D, Op>>(insn) : &VecLogic<D, Op>;
}

// PXOR of a register with itself is how it is cleared, whatever it held.
template <class D>
void ClearVec(Cpu<D>& cpu, const Insn& insn) {
  cpu.WriteVec(insn, insn.op[0], Vec128{});
}

template <class D>
Handler<D> SelectVecXor(const Insn& insn) {
  const bool same = insn.op[0].is_vec() && insn.op[1].is_vec() &&
                    insn.op[0].reg == insn.op[1].reg;
  return same ? &ClearVec<D> : SelectVecLogic<D, VecXor>(insn);
}

template <class D>
void RegisterWholeMoves(HandlerTable<D>& table) {
  for (const char* mnemonic : {"movaps", "movapd", "movdqa", "movntdqa",
                               "movntdq", "movntps", "movntpd"}) {
    table[mnemonic] = SelectSse<D, &MoveWhole<D, false>>;
  }
  for (const char* mnemonic : {"movups", "movupd", "movdqu", "lddqu"}) {
    table[mnemonic] = SelectSse<D, &MoveWhole<D, true>>;
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
  for (const char* mnemonic : {"pxor", "xorps", "xorpd"}) {
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
