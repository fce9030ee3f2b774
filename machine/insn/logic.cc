// AND, OR, XOR, NOT, TEST.

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

struct And {
  static constexpr bool kWrites = true;
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    const auto r = cpu.d().And(a, b);
    cpu.flags().template SetLogic<U>(r);
    return r;
  }
};

struct Test : And {
  static constexpr bool kWrites = false;
};

struct Or {
  static constexpr bool kWrites = true;
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    const auto r = cpu.d().Or(a, b);
    cpu.flags().template SetLogic<U>(r);
    return r;
  }
};

struct Xor {
  static constexpr bool kWrites = true;
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    const auto r = cpu.d().Xor(a, b);
    cpu.flags().template SetLogic<U>(r);
    return r;
  }
};

struct Not {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a) {
    return cpu.d().Not(a);
  }
};

}  // namespace

template <class D>
void RegisterLogic(HandlerTable<D>& table) {
  table["and"] = SelectBinary<D, And>;
  table["or"] = SelectBinary<D, Or>;
  table["xor"] = SelectBinary<D, Xor>;
  table["test"] = SelectBinary<D, Test>;
  table["not"] = SelectUnary<D, Not>;
}

CLEW_INSTANTIATE_FAMILY(RegisterLogic);

}  // namespace clew::machine
