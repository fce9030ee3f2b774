// ADD, ADC, SUB, SBB, CMP, INC, DEC, NEG.

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

struct Add {
  static constexpr bool kWrites = true;
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    const auto r = cpu.d().Add(a, b);
    cpu.flags().template Set<U>(FlagSource::kAdd, a, b, r);
    return r;
  }
};

struct Adc {
  static constexpr bool kWrites = true;
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    D& d = cpu.d();
    const auto carry = d.template ZExt<U>(cpu.flags().Carry());
    const auto r = d.Add(d.Add(a, b), carry);
    cpu.flags().template Set<U>(FlagSource::kAdc, a, b, r);
    return r;
  }
};

struct Sub {
  static constexpr bool kWrites = true;
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    const auto r = cpu.d().Sub(a, b);
    cpu.flags().template Set<U>(FlagSource::kSub, a, b, r);
    return r;
  }
};

struct Cmp : Sub {
  static constexpr bool kWrites = false;
};

struct Sbb {
  static constexpr bool kWrites = true;
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    D& d = cpu.d();
    const auto borrow = d.template ZExt<U>(cpu.flags().Carry());
    const auto r = d.Sub(d.Sub(a, b), borrow);
    cpu.flags().template Set<U>(FlagSource::kSbb, a, b, r);
    return r;
  }
};

struct Inc {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a) {
    D& d = cpu.d();
    const auto r = d.Add(a, d.Const(U{1}));
    cpu.flags().template SetKeepingCarry<U>(FlagSource::kInc, a, r);
    return r;
  }
};

struct Dec {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a) {
    D& d = cpu.d();
    const auto r = d.Sub(a, d.Const(U{1}));
    cpu.flags().template SetKeepingCarry<U>(FlagSource::kDec, a, r);
    return r;
  }
};

struct Neg {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a) {
    return Sub::Apply<D, U>(cpu, cpu.d().Const(U{0}), a);
  }
};

}  // namespace

template <class D>
void RegisterArith(HandlerTable<D>& table) {
  table["add"] = SelectBinary<D, Add>;
  table["adc"] = SelectBinary<D, Adc>;
  table["sub"] = SelectBinary<D, Sub>;
  table["sbb"] = SelectBinary<D, Sbb>;
  table["cmp"] = SelectBinary<D, Cmp>;
  table["inc"] = SelectUnary<D, Inc>;
  table["dec"] = SelectUnary<D, Dec>;
  table["neg"] = SelectUnary<D, Neg>;
}

CLEW_INSTANTIATE_FAMILY(RegisterArith);

}  // namespace clew::machine
