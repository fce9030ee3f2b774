// SHL, SHR, SAR, ROL, ROR, RCL, RCR, SHLD, SHRD.
//
// Counts are masked to 5 bits (6 for 64-bit operands); with a count of 0 no
// flag changes. Flags that the manual leaves undefined (overflow for counts
// above 1, adjust) get what is simplest. Source: Intel SDM vol. 2,
// "SAL/SAR/SHL/SHR", "RCL/RCR/ROL/ROR", "SHLD", "SHRD".

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

template <class U>
constexpr unsigned kWidth = 8 * sizeof(U);

template <class U>
unsigned MaskCount(uint64_t count) {
  return static_cast<unsigned>(count & (sizeof(U) == 8 ? 63 : 31));
}

template <class D, class U>
Val<D, bool> Top(D& d, Val<D, U> value) {
  return d.Bit(value, kWidth<U> - 1);
}

// Each operation: r = Apply(cpu, a, n) for a count n > 0, with flags.
struct Shl {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, unsigned n) {
    D& d = cpu.d();
    const auto r = d.Shl(a, d.Const(static_cast<U>(n)));
    const auto carry =
        n <= kWidth<U> ? d.Bit(a, kWidth<U> - n) : d.Const(false);
    cpu.flags().template SetResult<U>(r, carry, d.Xor(Top<D, U>(d, r), carry),
                                      d.Const(false));
    return r;
  }
};

struct Shr {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, unsigned n) {
    D& d = cpu.d();
    const auto r = d.Shr(a, d.Const(static_cast<U>(n)));
    const auto carry = n <= kWidth<U> ? d.Bit(a, n - 1) : d.Const(false);
    const auto overflow = n == 1 ? Top<D, U>(d, a) : d.Const(false);
    cpu.flags().template SetResult<U>(r, carry, overflow, d.Const(false));
    return r;
  }
};

struct Sar {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, unsigned n) {
    D& d = cpu.d();
    const auto r = d.Sar(a, d.Const(static_cast<U>(n)));
    const auto carry = n <= kWidth<U> ? d.Bit(a, n - 1) : Top<D, U>(d, a);
    cpu.flags().template SetResult<U>(r, carry, d.Const(false), d.Const(false));
    return r;
  }
};

// Rotations change carry and overflow only.
template <class D>
void SetRotateFlags(Cpu<D>& cpu, Val<D, bool> carry, Val<D, bool> overflow) {
  cpu.flags().SetOne(kFlagCarry, carry);
  cpu.flags().SetOne(kFlagOverflow, overflow);
}

template <class D, class U>
Val<D, U> RotateLeft(D& d, Val<D, U> a, unsigned n) {
  n %= kWidth<U>;
  return n == 0 ? a
                : d.Or(d.Shl(a, d.Const(static_cast<U>(n))),
                       d.Shr(a, d.Const(static_cast<U>(kWidth<U> - n))));
}

struct Rol {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, unsigned n) {
    D& d = cpu.d();
    const auto r = RotateLeft<D, U>(d, a, n);
    const auto carry = d.Bit(r, 0);
    SetRotateFlags<D>(cpu, carry, d.Xor(Top<D, U>(d, r), carry));
    return r;
  }
};

struct Ror {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, unsigned n) {
    D& d = cpu.d();
    const auto r = RotateLeft<D, U>(d, a, kWidth<U> - n % kWidth<U>);
    const auto carry = Top<D, U>(d, r);
    SetRotateFlags<D>(cpu, carry, d.Xor(carry, d.Bit(r, kWidth<U> - 2)));
    return r;
  }
};

// Through carry: a rotation of width + 1 bits, one step at a time.
struct Rcl {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, unsigned n) {
    D& d = cpu.d();
    auto carry = cpu.flags().Carry();
    for (n %= kWidth<U> + 1; n > 0; --n) {
      const auto out = Top<D, U>(d, a);
      a = d.Or(d.Shl(a, d.Const(U{1})), d.template ZExt<U>(carry));
      carry = out;
    }
    SetRotateFlags<D>(cpu, carry, d.Xor(Top<D, U>(d, a), carry));
    return a;
  }
};

struct Rcr {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, unsigned n) {
    D& d = cpu.d();
    const auto top = d.Const(static_cast<U>(kWidth<U> - 1));
    auto carry = cpu.flags().Carry();
    for (n %= kWidth<U> + 1; n > 0; --n) {
      const auto out = d.Bit(a, 0);
      a = d.Or(d.Shr(a, d.Const(U{1})), d.Shl(d.template ZExt<U>(carry), top));
      carry = out;
    }
    SetRotateFlags<D>(cpu, carry,
                      d.Xor(Top<D, U>(d, a), d.Bit(a, kWidth<U> - 2)));
    return a;
  }
};

template <class D>
unsigned Count(Cpu<D>& cpu, const Insn& insn, const Operand& operand) {
  return operand.is_imm()
             ? static_cast<unsigned>(insn.imm & 0xff)
             : cpu.d().Concretise(cpu.template GetReg<uint8_t>(8 * kRcx));
}

template <class D, class U, class Op>
void ShiftReg(Cpu<D>& cpu, const Insn& insn) {
  const unsigned n = MaskCount<U>(Count(cpu, insn, insn.op[1]));
  const auto a = cpu.template GetReg<U>(insn.op[0].reg);
  // Even with a count of 0 a 32-bit operand clears the upper half.
  cpu.template SetReg<U>(insn.op[0].reg,
                         n == 0 ? a : Op::template Apply<D, U>(cpu, a, n));
}

template <class D, class U, class Op>
void ShiftMem(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t addr = cpu.Address(insn);
  const unsigned n = MaskCount<U>(Count(cpu, insn, insn.op[1]));
  const auto a = cpu.template Load<U>(addr);
  if (!cpu.faulted() && cpu.CheckStore(addr, sizeof(U))) {
    cpu.template Store<U>(addr,
                          n == 0 ? a : Op::template Apply<D, U>(cpu, a, n));
  }
}

template <class D, class Op>
Handler<D> SelectShift(const Insn& insn) {
  const Operand& to = insn.op[0];
  if (insn.lock || (!to.is_reg() && !to.is_mem())) {
    return nullptr;
  }
  return BySize<D>(to.size_bytes, [&]<class U>() {
    return to.is_reg() ? &ShiftReg<D, U, Op> : &ShiftMem<D, U, Op>;
  });
}

// SHLD, SHRD: a is filled from b.
template <class D, class U, bool kLeft>
Val<D, U> DoubleShift(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b, unsigned n) {
  D& d = cpu.d();
  if (n > kWidth<U>) {  // only 16-bit operands: undefined, as a rotation
    std::swap(a, b);
    n -= kWidth<U>;
  }
  const auto count = d.Const(static_cast<U>(n));
  const auto rest = d.Const(static_cast<U>(kWidth<U> - n));
  const auto r = kLeft ? d.Or(d.Shl(a, count), d.Shr(b, rest))
                       : d.Or(d.Shr(a, count), d.Shl(b, rest));
  const auto carry = d.Bit(a, kLeft ? kWidth<U> - n : n - 1);
  const auto overflow = d.Xor(Top<D, U>(d, r), Top<D, U>(d, a));
  cpu.flags().template SetResult<U>(r, carry, overflow, d.Const(false));
  return r;
}

template <class D, class U, bool kLeft>
void ShiftDouble(Cpu<D>& cpu, const Insn& insn) {
  const Operand& to = insn.op[0];
  const unsigned n = MaskCount<U>(Count(cpu, insn, insn.op[2]));
  const auto a = cpu.template Read<U>(insn, to);
  if (cpu.faulted() ||
      (to.is_mem() && !cpu.CheckStore(cpu.Address(insn), sizeof(U)))) {
    return;
  }
  const auto b = cpu.template GetReg<U>(insn.op[1].reg);
  cpu.template Write<U>(insn, to,
                        n == 0 ? a : DoubleShift<D, U, kLeft>(cpu, a, b, n));
}

template <class D, bool kLeft>
Handler<D> SelectDouble(const Insn& insn) {
  if (insn.op[0].size_bytes == 1) {
    return nullptr;
  }
  return BySize<D>(insn.op[0].size_bytes,
                   []<class U>() { return &ShiftDouble<D, U, kLeft>; });
}

}  // namespace

template <class D>
void RegisterShift(HandlerTable<D>& table) {
  table["shl"] = SelectShift<D, Shl>;
  table["sal"] = SelectShift<D, Shl>;
  table["shr"] = SelectShift<D, Shr>;
  table["sar"] = SelectShift<D, Sar>;
  table["rol"] = SelectShift<D, Rol>;
  table["ror"] = SelectShift<D, Ror>;
  table["rcl"] = SelectShift<D, Rcl>;
  table["rcr"] = SelectShift<D, Rcr>;
  table["shld"] = SelectDouble<D, true>;
  table["shrd"] = SelectDouble<D, false>;
}

CLEW_INSTANTIATE_FAMILY(RegisterShift);

}  // namespace clew::machine
