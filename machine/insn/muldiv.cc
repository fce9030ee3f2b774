// MUL, IMUL, MULX, DIV, IDIV. Sign, zero, parity and adjust are undefined after
// multiplications, all flags after divisions.

#include <limits>

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

__extension__ typedef unsigned __int128 Uint128;
__extension__ typedef __int128 Int128;

template <class D, class U>
struct Product {
  Val<D, U> low;
  Val<D, U> high;
};

// The upper half of a 64-bit product from 32-bit partial products.
template <class D>
Val<D, uint64_t> HighUnsigned64(D& d, Val<D, uint64_t> a, Val<D, uint64_t> b) {
  const auto half = d.Const(uint64_t{32});
  const auto mask = d.Const(uint64_t{0xffffffff});
  const auto al = d.And(a, mask);
  const auto ah = d.Shr(a, half);
  const auto bl = d.And(b, mask);
  const auto bh = d.Shr(b, half);
  const auto p1 = d.Mul(al, bh);
  const auto p2 = d.Mul(ah, bl);
  const auto middle = d.Add(d.Shr(d.Mul(al, bl), half),
                            d.Add(d.And(p1, mask), d.And(p2, mask)));
  return d.Add(d.Add(d.Mul(ah, bh), d.Shr(middle, half)),
               d.Add(d.Shr(p1, half), d.Shr(p2, half)));
}

template <class D, bool kSigned>
Product<D, uint64_t> Multiply64(D& d, Val<D, uint64_t> a, Val<D, uint64_t> b) {
  if constexpr (!D::kShadow) {
    const auto product =
        kSigned ? static_cast<Uint128>(
                      static_cast<Int128>(static_cast<int64_t>(a)) *
                      static_cast<int64_t>(b))
                : static_cast<Uint128>(a) * b;
    return {static_cast<uint64_t>(product),
            static_cast<uint64_t>(product >> 64)};
  } else {
    auto high = HighUnsigned64<D>(d, a, b);
    if (kSigned) {
      const auto top = d.Const(uint64_t{63});
      high = d.Sub(high, d.And(d.Sar(a, top), b));
      high = d.Sub(high, d.And(d.Sar(b, top), a));
    }
    return {d.Mul(a, b), high};
  }
}

template <class D, class U, bool kSigned>
Product<D, U> Multiply(D& d, Val<D, U> a, Val<D, U> b) {
  if constexpr (sizeof(U) == 8) {
    return Multiply64<D, kSigned>(d, a, b);
  } else {
    const auto wide = [&](Val<D, U> v) {
      if constexpr (kSigned) {
        return d.template SExt<uint64_t>(v);
      } else {
        return d.template ZExt<uint64_t>(v);
      }
    };
    const auto product = d.Mul(wide(a), wide(b));
    const auto shift = d.Const(uint64_t{8 * sizeof(U)});
    return {d.template Trunc<U>(product),
            d.template Trunc<U>(d.Shr(product, shift))};
  }
}

// Carry and overflow: the upper half says more than the lower one alone.
template <class D, class U, bool kSigned>
void SetProductFlags(Cpu<D>& cpu, const Product<D, U>& product) {
  D& d = cpu.d();
  const auto top = d.Const(static_cast<U>(8 * sizeof(U) - 1));
  const auto expected = kSigned ? d.Sar(product.low, top) : d.Const(U{0});
  const auto lost = d.Not(d.Eq(product.high, expected));
  cpu.flags().template SetResult<U>(product.low, lost, lost, d.Const(false));
}

template <class D, class U>
void WriteWide(Cpu<D>& cpu, Val<D, U> low, Val<D, U> high) {
  cpu.template SetReg<U>(8 * kRax, low);
  // ah for bytes, rdx else
  cpu.template SetReg<U>(sizeof(U) == 1 ? 1 : 8 * kRdx, high);
}

// rdx:rax = rax * operand
template <class D, class U, bool kSigned>
void MulWide(Cpu<D>& cpu, const Insn& insn) {
  const auto b = cpu.template Read<U>(insn, insn.op[0]);
  if (cpu.faulted()) {
    return;
  }
  const auto a = cpu.template GetReg<U>(8 * kRax);
  const auto product = Multiply<D, U, kSigned>(cpu.d(), a, b);
  SetProductFlags<D, U, kSigned>(cpu, product);
  WriteWide<D, U>(cpu, product.low, product.high);
}

// Two operands: op0 *= op1; three: op0 = op1 * imm.
template <class D, class U>
void ImulInto(Cpu<D>& cpu, const Insn& insn) {
  const auto b = cpu.template Read<U>(insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  const auto a = insn.op_count == 3 ? cpu.d().Const(static_cast<U>(insn.imm))
                                    : cpu.template GetReg<U>(insn.op[0].reg);
  const auto product = Multiply<D, U, true>(cpu.d(), a, b);
  SetProductFlags<D, U, true>(cpu, product);
  cpu.template SetReg<U>(insn.op[0].reg, product.low);
}

// MULX: op[0]:op[1] = RDX * op[2], without flags. Where both are one register,
// it gets the upper half.
template <class D, class U>
void MulInto(Cpu<D>& cpu, const Insn& insn) {
  const auto b = cpu.template Read<U>(insn, insn.op[2]);
  if (cpu.faulted()) {
    return;
  }
  const auto a = cpu.template GetReg<U>(8 * kRdx);
  const auto product = Multiply<D, U, false>(cpu.d(), a, b);
  cpu.template SetReg<U>(insn.op[1].reg, product.low);
  cpu.template SetReg<U>(insn.op[0].reg, product.high);
}

template <class D>
Handler<D> SelectMulx(const Insn& insn) {
  return ByVexSize<D>(insn,
                      []<class U>() -> Handler<D> { return &MulInto<D, U>; });
}

template <class D>
Handler<D> SelectMul(const Insn& insn) {
  return BySize<D>(insn.op[0].size_bytes,
                   []<class U>() { return &MulWide<D, U, false>; });
}

template <class D>
Handler<D> SelectImul(const Insn& insn) {
  return BySize<D>(insn.op[0].size_bytes, [&]<class U>() {
    return insn.op_count == 1 ? &MulWide<D, U, true> : &ImulInto<D, U>;
  });
}

template <class U>
struct WideOf;
template <>
struct WideOf<uint8_t> {
  using Type = uint16_t;
  using SignedType = int16_t;
};
template <>
struct WideOf<uint16_t> {
  using Type = uint32_t;
  using SignedType = int32_t;
};
template <>
struct WideOf<uint32_t> {
  using Type = uint64_t;
  using SignedType = int64_t;
};
template <>
struct WideOf<uint64_t> {
  using Type = Uint128;
  using SignedType = Int128;
};

template <class U>
struct Quotient {
  bool fits;
  U quotient;
  U remainder;
};

template <class U>
Quotient<U> DivideUnsigned(U high, U low, U divisor) {
  using Wide = typename WideOf<U>::Type;
  if (divisor == 0 || high >= divisor) {
    return {false, 0, 0};
  }
  const Wide dividend =
      static_cast<Wide>(static_cast<Wide>(high) << (8 * sizeof(U)) | low);
  return {true, static_cast<U>(dividend / divisor),
          static_cast<U>(dividend % divisor)};
}

template <class U>
typename WideOf<U>::SignedType SignExtend(U value) {
  using Wide = typename WideOf<U>::Type;
  constexpr auto kSign = static_cast<Wide>(Wide{1} << (8 * sizeof(U) - 1));
  const auto moved = static_cast<Wide>(Wide{value} ^ kSign);
  return static_cast<typename WideOf<U>::SignedType>(
      static_cast<Wide>(moved - kSign));
}

template <class U>
Quotient<U> DivideSigned(U high, U low, U divisor) {
  using Wide = typename WideOf<U>::Type;
  using SignedWide = typename WideOf<U>::SignedType;
  const auto dividend = static_cast<SignedWide>(
      static_cast<Wide>(static_cast<Wide>(high) << (8 * sizeof(U)) | low));
  const SignedWide by = SignExtend(divisor);
  // The most negative dividend by -1 would overflow in C++ as well.
  const auto least = static_cast<SignedWide>(
      static_cast<Wide>(Wide{1} << (16 * sizeof(U) - 1)));
  if (by == 0 || (by == -1 && dividend == least)) {
    return {false, 0, 0};
  }
  const auto quotient = static_cast<SignedWide>(dividend / by);
  return {quotient >= std::numeric_limits<Signed<U>>::min() &&
              quotient <= std::numeric_limits<Signed<U>>::max(),
          static_cast<U>(quotient), static_cast<U>(dividend % by)};
}

// The shadow passes through where the quotient of the lower half alone is the
// same thing: the upper half is its zero or sign extension.
template <class D, class U, bool kSigned>
bool DivideShadowed(Cpu<D>& cpu, Val<D, U> high, Val<D, U> low,
                    Val<D, U> divisor) {
  D& d = cpu.d();
  const auto top = d.Const(static_cast<U>(8 * sizeof(U) - 1));
  const auto extension = kSigned ? d.Sar(low, top) : d.Const(U{0});
  if (!cpu.Decide(d.Eq(high, extension)) ||
      cpu.Decide(d.Eq(divisor, d.Const(U{0}))) ||
      (kSigned && cpu.Decide(d.Eq(divisor, d.Const(static_cast<U>(~U{0})))))) {
    return false;
  }
  if constexpr (kSigned) {
    WriteWide<D, U>(cpu, d.Sdiv(low, divisor), d.Srem(low, divisor));
  } else {
    WriteWide<D, U>(cpu, d.Udiv(low, divisor), d.Urem(low, divisor));
  }
  return true;
}

template <class D, class U, bool kSigned>
void Divide(Cpu<D>& cpu, const Insn& insn) {
  D& d = cpu.d();
  const auto divisor = cpu.template Read<U>(insn, insn.op[0]);
  if (cpu.faulted()) {
    return;
  }
  const auto low = cpu.template GetReg<U>(8 * kRax);
  const auto high = cpu.template GetReg<U>(sizeof(U) == 1 ? 1 : 8 * kRdx);
  if constexpr (D::kShadow) {
    if (DivideShadowed<D, U, kSigned>(cpu, high, low, divisor)) {
      return;
    }
  }
  const U by = d.Concretise(divisor);
  const auto result =
      kSigned ? DivideSigned<U>(d.Concretise(high), d.Concretise(low), by)
              : DivideUnsigned<U>(d.Concretise(high), d.Concretise(low), by);
  if (!result.fits) {
    cpu.Raise(FaultKind::kDivide);
    return;
  }
  WriteWide<D, U>(cpu, d.Const(result.quotient), d.Const(result.remainder));
}

template <class D, bool kSigned>
Handler<D> SelectDivide(const Insn& insn) {
  return BySize<D>(insn.op[0].size_bytes,
                   []<class U>() { return &Divide<D, U, kSigned>; });
}

}  // namespace

template <class D>
void RegisterMuldiv(HandlerTable<D>& table) {
  table["mul"] = SelectMul<D>;
  table["mulx"] = SelectMulx<D>;
  table["imul"] = SelectImul<D>;
  table["div"] = SelectDivide<D, false>;
  table["idiv"] = SelectDivide<D, true>;
}

CLEW_INSTANTIATE_FAMILY(RegisterMuldiv);

}  // namespace clew::machine
