// BMI1, BMI2, LZCNT and ADX: bits and carries in general registers. All but
// TZCNT, LZCNT, ADCX and ADOX are encoded with VEX. (MULX is in muldiv.cc.)
//
// Flags that the manual leaves undefined get what is simplest. Source: Intel
// SDM vol. 2, the page of each instruction.

#include <bit>

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

template <class U>
constexpr unsigned kWidth = 8 * sizeof(U);

// The lowest `count` bits of a: all of them, if it has no more.
template <class D, class U>
Val<D, U> LowBits(D& d, Val<D, U> a, unsigned count) {
  return count < kWidth<U>
             ? d.And(a, d.Const(static_cast<U>((U{1} << count) - 1)))
             : a;
}

// Each operation of two sources: r = Apply(cpu, a, b), with flags.
struct Andn {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    D& d = cpu.d();
    const auto r = d.And(d.template Not<U>(a), b);
    cpu.flags().template SetLogic<U>(r);
    return r;
  }
};

// From bit `start` of a on, `count` bits: the low two bytes of b.
struct Bextr {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    D& d = cpu.d();
    const auto control = d.Concretise(b);
    const unsigned start = control & 0xff;
    const unsigned count = (control >> 8) & 0xff;
    const auto r =
        LowBits<D, U>(d, d.Shr(a, d.Const(static_cast<U>(start))), count);
    cpu.flags().template SetLogic<U>(r);
    return r;
  }
};

// The bits of a below the number in the low byte of b.
struct Bzhi {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    D& d = cpu.d();
    const unsigned count = d.Concretise(b) & 0xff;
    const auto r = LowBits<D, U>(d, a, count);
    cpu.flags().template SetResult<U>(r, d.Const(count >= kWidth<U>),
                                      d.Const(false), d.Const(false));
    return r;
  }
};

// Bits of a, lowest first, to the places of the ones of mask.
struct Pdep {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    D& d = cpu.d();
    U from = d.Concretise(a);
    U r = 0;
    for (U mask = d.Concretise(b); mask != 0; mask &= mask - 1) {
      if ((from & 1) != 0) {
        r |= mask & (~mask + 1);
      }
      from >>= 1;
    }
    return d.Const(r);
  }
};

// The bits of a at the places of the ones of mask, side by side.
struct Pext {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    D& d = cpu.d();
    const U from = d.Concretise(a);
    U r = 0;
    U place = 1;
    for (U mask = d.Concretise(b); mask != 0; mask &= mask - 1) {
      if ((from & mask & (~mask + 1)) != 0) {
        r |= place;
      }
      place <<= 1;
    }
    return d.Const(r);
  }
};

// Shifts without flags; the count is masked.
template <class D, class U>
Val<D, U> CountOf(D& d, Val<D, U> b) {
  return d.And(b, d.Const(static_cast<U>(kWidth<U> - 1)));
}
struct Sarx {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    return cpu.d().Sar(a, CountOf<D, U>(cpu.d(), b));
  }
};
struct Shlx {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    return cpu.d().Shl(a, CountOf<D, U>(cpu.d(), b));
  }
};
struct Shrx {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    return cpu.d().Shr(a, CountOf<D, U>(cpu.d(), b));
  }
};
struct Rorx {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
    D& d = cpu.d();
    const auto count = CountOf<D, U>(d, b);
    const auto width = d.Const(static_cast<U>(kWidth<U>));
    return d.Or(d.Shr(a, count), d.Shl(a, d.Sub(width, count)));
  }
};

// op[0] = Op(op[1], op[2]).
template <class D, class U, class Op>
void TwoSources(Cpu<D>& cpu, const Insn& insn) {
  const auto a = cpu.template Read<U>(insn, insn.op[1]);
  const auto b = cpu.template Read<U>(insn, insn.op[2]);
  if (!cpu.faulted()) {
    cpu.template SetReg<U>(insn.op[0].reg, Op::template Apply<D, U>(cpu, a, b));
  }
}

// Each operation of one source: as above.
struct Blsi {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a) {
    D& d = cpu.d();
    const auto r = d.And(a, d.template Neg<U>(a));
    cpu.flags().template SetResult<U>(r, d.Not(d.Eq(a, d.Const(U{0}))),
                                      d.Const(false), d.Const(false));
    return r;
  }
};
// BLSMSK and BLSR combine a and a - 1, and tell by carry that a was 0.
template <class D, class U>
void SetWasZero(Cpu<D>& cpu, Val<D, U> a, Val<D, U> r) {
  D& d = cpu.d();
  cpu.flags().template SetResult<U>(r, d.Eq(a, d.Const(U{0})), d.Const(false),
                                    d.Const(false));
}
struct Blsmsk {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a) {
    D& d = cpu.d();
    const auto r = d.Xor(a, d.Sub(a, d.Const(U{1})));
    SetWasZero<D, U>(cpu, a, r);
    return r;
  }
};
struct Blsr {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a) {
    D& d = cpu.d();
    const auto r = d.And(a, d.Sub(a, d.Const(U{1})));
    SetWasZero<D, U>(cpu, a, r);
    return r;
  }
};
// The number of zeros below the lowest one, or above the highest.
template <bool kTrailing>
struct CountZeros {
  template <class D, class U>
  static Val<D, U> Apply(Cpu<D>& cpu, Val<D, U> a) {
    D& d = cpu.d();
    const U value = d.Concretise(a);
    const auto r = d.Const(static_cast<U>(kTrailing ? std::countr_zero(value)
                                                    : std::countl_zero(value)));
    cpu.flags().template SetResult<U>(r, d.Const(value == 0), d.Const(false),
                                      d.Const(false));
    return r;
  }
};

// op[0] = Op(op[1]).
template <class D, class U, class Op>
void OneSource(Cpu<D>& cpu, const Insn& insn) {
  const auto a = cpu.template Read<U>(insn, insn.op[1]);
  if (!cpu.faulted()) {
    cpu.template SetReg<U>(insn.op[0].reg, Op::template Apply<D, U>(cpu, a));
  }
}

// ADCX and ADOX: an addition with carry in and out of one flag, the others as
// they were.
template <class D, class U, uint64_t kFlag>
void AddThroughFlag(Cpu<D>& cpu, const Insn& insn) {
  D& d = cpu.d();
  const auto b = cpu.template Read<U>(insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  const auto a = cpu.template GetReg<U>(insn.op[0].reg);
  const auto in =
      kFlag == kFlagCarry ? cpu.flags().Carry() : cpu.flags().Overflow();
  const auto sum = d.Add(a, b);
  const auto r = d.Add(sum, d.template ZExt<U>(in));
  cpu.flags().SetOne(kFlag, d.template Or<bool>(d.Ult(sum, a), d.Ult(r, sum)));
  cpu.template SetReg<U>(insn.op[0].reg, r);
}

template <class D, class Op>
Handler<D> SelectTwoSources(const Insn& insn) {
  return ByVexSize<D>(
      insn, []<class U>() -> Handler<D> { return &TwoSources<D, U, Op>; });
}

template <class D, class Op>
Handler<D> SelectVexOneSource(const Insn& insn) {
  return ByVexSize<D>(
      insn, []<class U>() -> Handler<D> { return &OneSource<D, U, Op>; });
}

template <class D, class Op>
Handler<D> SelectLegacyOneSource(const Insn& insn) {
  if (insn.op[0].size_bytes == 1) {
    return nullptr;
  }
  return BySize<D>(insn.op[0].size_bytes,
                   []<class U>() { return &OneSource<D, U, Op>; });
}

// The prefix makes the instruction, 66 the one and F3 the other; Capstone does
// not always say so.
template <class D, uint64_t kFlag>
Handler<D> SelectAddThroughFlag(const Insn& insn) {
  const bool is_it =
      kFlag == kFlagCarry ? insn.opsize && !insn.rep : insn.rep && !insn.opsize;
  if (!is_it || insn.repne) {
    return nullptr;
  }
  return insn.rex_w ? &AddThroughFlag<D, uint64_t, kFlag>
                    : &AddThroughFlag<D, uint32_t, kFlag>;
}

}  // namespace

template <class D>
void RegisterBmi(HandlerTable<D>& table) {
  table["andn"] = SelectTwoSources<D, Andn>;
  table["bextr"] = SelectTwoSources<D, Bextr>;
  table["bzhi"] = SelectTwoSources<D, Bzhi>;
  table["pdep"] = SelectTwoSources<D, Pdep>;
  table["pext"] = SelectTwoSources<D, Pext>;
  table["sarx"] = SelectTwoSources<D, Sarx>;
  table["shlx"] = SelectTwoSources<D, Shlx>;
  table["shrx"] = SelectTwoSources<D, Shrx>;
  table["rorx"] = SelectTwoSources<D, Rorx>;
  table["blsi"] = SelectVexOneSource<D, Blsi>;
  table["blsmsk"] = SelectVexOneSource<D, Blsmsk>;
  table["blsr"] = SelectVexOneSource<D, Blsr>;
  table["tzcnt"] = SelectLegacyOneSource<D, CountZeros<true>>;
  table["lzcnt"] = SelectLegacyOneSource<D, CountZeros<false>>;
  table["adcx"] = SelectAddThroughFlag<D, kFlagCarry>;
  table["adox"] = SelectAddThroughFlag<D, kFlagOverflow>;
}

CLEW_INSTANTIATE_FAMILY(RegisterBmi);

}  // namespace clew::machine
