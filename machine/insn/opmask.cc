// Opmask registers: moves, logic, shifts, tests, and what goes between them and
// vector registers.
//
// Source: Intel SDM vol. 2, "KADDW/KADDB/KADDQ/KADDD" to
// "KXORW/KXORB/KXORQ/KXORD".

#include "machine/insn/evex_common.h"

namespace clew::machine {
namespace {

// An opmask register or memory, of as many bits as U has. Faults.
template <class U, class D>
U ReadMask(Cpu<D>& cpu, const Insn& insn, const Operand& operand) {
  return operand.is_mask()
             ? static_cast<U>(cpu.GetOpmask(operand.reg))
             : cpu.d().Concretise(cpu.template Read<U>(insn, operand));
}

// KMOV: between opmask registers, general registers and memory. A register is
// written in whole.
template <class D, class U>
void MoveMask(Cpu<D>& cpu, const Insn& insn) {
  const U value = ReadMask<U>(cpu, insn, insn.op[1]);
  const Operand& to = insn.op[0];
  if (cpu.faulted()) {
    return;
  }
  if (to.is_mask()) {
    cpu.SetOpmask(to.reg, value);
  } else if (to.is_reg()) {
    cpu.template SetReg<uint64_t>(to.reg, cpu.d().Const(uint64_t{value}));
  } else {
    cpu.template Write<U>(insn, to, cpu.d().Const(value));
  }
}

// op[0] = Op(op[1], op[2]).
template <class D, class U, class Op>
void MaskLogic(Cpu<D>& cpu, const Insn& insn) {
  const auto a = static_cast<U>(cpu.GetOpmask(insn.op[1].reg));
  const auto b = static_cast<U>(cpu.GetOpmask(insn.op[2].reg));
  cpu.SetOpmask(insn.op[0].reg, static_cast<U>(Op::Apply(a, b)));
}

struct MaskAnd {
  static uint64_t Apply(uint64_t a, uint64_t b) { return a & b; }
};
struct MaskAndNot {
  static uint64_t Apply(uint64_t a, uint64_t b) { return ~a & b; }
};
struct MaskOr {
  static uint64_t Apply(uint64_t a, uint64_t b) { return a | b; }
};
struct MaskXor {
  static uint64_t Apply(uint64_t a, uint64_t b) { return a ^ b; }
};
struct MaskXnor {
  static uint64_t Apply(uint64_t a, uint64_t b) { return ~(a ^ b); }
};
struct MaskAdd {
  static uint64_t Apply(uint64_t a, uint64_t b) { return a + b; }
};

template <class D, class U>
void MaskNot(Cpu<D>& cpu, const Insn& insn) {
  const auto value = static_cast<U>(cpu.GetOpmask(insn.op[1].reg));
  cpu.SetOpmask(insn.op[0].reg, static_cast<U>(~value));
}

// KUNPCK: the low half of the second source is that of the result, the low half
// of the first one the upper.
template <class D, class Half>
void MaskUnpack(Cpu<D>& cpu, const Insn& insn) {
  const auto upper = static_cast<Half>(cpu.GetOpmask(insn.op[1].reg));
  const auto lower = static_cast<Half>(cpu.GetOpmask(insn.op[2].reg));
  cpu.SetOpmask(insn.op[0].reg, uint64_t{upper} << (8 * sizeof(Half)) | lower);
}

// KSHIFTL, KSHIFTR: a count of the width or more gives 0.
template <class D, class U, bool kLeft>
void MaskShift(Cpu<D>& cpu, const Insn& insn) {
  const auto value = static_cast<U>(cpu.GetOpmask(insn.op[1].reg));
  const auto count = static_cast<U>(insn.imm & 0xff);
  cpu.SetOpmask(insn.op[0].reg, kLeft ? Concrete::Shl<U>(value, count)
                                      : Concrete::Shr<U>(value, count));
}

// Sets ZF and CF, and clears the other flags.
template <class D>
void SetZeroAndCarry(Cpu<D>& cpu, bool zero, bool carry) {
  cpu.flags().SetAll((zero ? kFlagZero : 0) | (carry ? kFlagCarry : 0));
}

// KORTEST: ZF if nothing is set in both together, CF if all is.
template <class D, class U>
void MaskOrTest(Cpu<D>& cpu, const Insn& insn) {
  const auto both = static_cast<U>(cpu.GetOpmask(insn.op[0].reg) |
                                   cpu.GetOpmask(insn.op[1].reg));
  SetZeroAndCarry(cpu, both == 0, both == static_cast<U>(~U{0}));
}

// KTEST: ZF if op[0] & op[1] is 0, CF if ~op[0] & op[1] is.
template <class D, class U>
void MaskTest(Cpu<D>& cpu, const Insn& insn) {
  const auto a = static_cast<U>(cpu.GetOpmask(insn.op[0].reg));
  const auto b = static_cast<U>(cpu.GetOpmask(insn.op[1].reg));
  SetZeroAndCarry(cpu, (a & b) == 0, (static_cast<U>(~a) & b) == 0);
}

template <class D, class U>
void RegisterOfWidth(HandlerTable<D>& table,
                     const std::array<std::string_view, 12>& mnemonics) {
  constexpr std::array<Selector<D>, 12> kSelectors = {
      Always<D, &MoveMask<D, U>>,
      Always<D, &MaskLogic<D, U, MaskAnd>>,
      Always<D, &MaskLogic<D, U, MaskAndNot>>,
      Always<D, &MaskLogic<D, U, MaskOr>>,
      Always<D, &MaskLogic<D, U, MaskXor>>,
      Always<D, &MaskLogic<D, U, MaskXnor>>,
      Always<D, &MaskLogic<D, U, MaskAdd>>,
      Always<D, &MaskNot<D, U>>,
      Always<D, &MaskShift<D, U, true>>,
      Always<D, &MaskShift<D, U, false>>,
      Always<D, &MaskOrTest<D, U>>,
      Always<D, &MaskTest<D, U>>};
  for (size_t i = 0; i < kSelectors.size(); ++i) {
    table[mnemonics[i]] = kSelectors[i];
  }
}

}  // namespace

template <class D>
void RegisterOpmask(HandlerTable<D>& table) {
#define CLEW_OPMASK(U, w)                                                     \
  RegisterOfWidth<D, U>(                                                      \
      table,                                                                  \
      {"kmov" w, "kand" w, "kandn" w, "kor" w, "kxor" w, "kxnor" w, "kadd" w, \
       "knot" w, "kshiftl" w, "kshiftr" w, "kortest" w, "ktest" w})
  CLEW_OPMASK(uint8_t, "b");
  CLEW_OPMASK(uint16_t, "w");
  CLEW_OPMASK(uint32_t, "d");
  CLEW_OPMASK(uint64_t, "q");
#undef CLEW_OPMASK
  table["kunpckbw"] = Always<D, &MaskUnpack<D, uint8_t>>;
  table["kunpckwd"] = Always<D, &MaskUnpack<D, uint16_t>>;
  table["kunpckdq"] = Always<D, &MaskUnpack<D, uint32_t>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterOpmask);

}  // namespace clew::machine
