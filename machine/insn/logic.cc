// AND, OR, XOR, NOT, TEST.

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

struct And {
  static constexpr bool kWrites = true;
  template <class D, class U>
  static auto Apply(Cpu<D>& cpu, typename D::template V<U> a,
                    typename D::template V<U> b) {
    const auto r = cpu.d().template And<U>(a, b);
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
  static auto Apply(Cpu<D>& cpu, typename D::template V<U> a,
                    typename D::template V<U> b) {
    const auto r = cpu.d().template Or<U>(a, b);
    cpu.flags().template SetLogic<U>(r);
    return r;
  }
};

struct Xor {
  static constexpr bool kWrites = true;
  template <class D, class U>
  static auto Apply(Cpu<D>& cpu, typename D::template V<U> a,
                    typename D::template V<U> b) {
    const auto r = cpu.d().template Xor<U>(a, b);
    cpu.flags().template SetLogic<U>(r);
    return r;
  }
};

struct Not {
  template <class D, class U>
  static auto Apply(Cpu<D>& cpu, typename D::template V<U> a) {
    return cpu.d().template Not<U>(a);
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
