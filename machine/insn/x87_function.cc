// FSQRT, FRNDINT, FSCALE, FPREM, FPREM1, FXTRACT and the transcendental ones:
// all are D9 with no explicit operand.

#include "machine/insn/x87_common.h"

namespace clew::machine {
namespace {

// What is cleared also where there is no result but a NaN: C2 says that a
// reduction or a function is not complete. (C0 and C3, bits of FPREM's
// quotient, are then undefined: they stay.)
constexpr uint16_t kDoneConditions = kX87C1 | kX87C2;

template <uint16_t kConditions>
void Underflow(X87Stack& stack) {
  stack.StackUnderflow();
  stack.Note(0, kConditions & kDoneConditions);
}

template <class D, X87Unary kOp, uint16_t kConditions>
void OfOne(Cpu<D>& cpu, const Insn&) {
  X87Stack stack(cpu.regs().x87);
  X87Env env = {.control = stack.control()};
  if (stack.empty(0)) {
    stack.Set(0, kX87Indefinite);
    Underflow<kConditions>(stack);
    return;
  }
  stack.Set(0, kOp(stack.st(0), env));
  stack.Note(env.status, kConditions);
}

// st(0) by st(0) and st(1).
template <class D, X87Binary kOp, uint16_t kConditions>
void OfTwo(Cpu<D>& cpu, const Insn&) {
  X87Stack stack(cpu.regs().x87);
  X87Env env = {.control = stack.control()};
  if (stack.AnyEmpty(0, 1)) {
    stack.Set(0, kX87Indefinite);
    Underflow<kConditions>(stack);
    return;
  }
  const Float80 result = kOp(stack.st(0), stack.st(1), env);
  stack.Set(0, result);
  const bool none = (result.sign_exponent & 0x7fff) == 0x7fff;
  stack.Note(env.status, none ? kConditions & kDoneConditions : kConditions);
}

// st(1) by st(0) and st(1), then pop.
template <class D, X87Binary kOp>
void OfTwoPop(Cpu<D>& cpu, const Insn&) {
  X87Stack stack(cpu.regs().x87);
  X87Env env = {.control = stack.control()};
  if (stack.AnyEmpty(0, 1)) {
    stack.Set(1, kX87Indefinite);
    stack.StackUnderflow();
  } else {
    stack.Set(1, kOp(stack.st(0), stack.st(1), env));
    stack.Note(env.status, kX87C1);
  }
  stack.Pop();
}

// Two results: kBelow replaces st(0), then kAbove is pushed. With C2 set the
// operand was out of range: nothing changes. FXTRACT does not know C2.
template <class D, X87Unary kBelow, X87Unary kAbove, uint16_t kConditions>
void OfOneToTwo(Cpu<D>& cpu, const Insn&) {
  X87Stack stack(cpu.regs().x87);
  if (stack.empty(0) || !stack.empty(7)) {
    const bool overflow = !stack.empty(0);
    stack.Set(0, kX87Indefinite);
    stack.Rotate(7);
    stack.Set(0, kX87Indefinite);
    stack.Note(0, kConditions);
    overflow ? stack.StackOverflow() : stack.StackUnderflow();
    return;
  }
  const Float80 a = stack.st(0);
  X87Env env = {.control = stack.control()};
  const Float80 above = kAbove(a, env);
  stack.Note(env.status, kConditions);
  if ((env.status & kX87C2) == 0) {
    stack.Set(0, kBelow(a, env));
    stack.Push(above);
  }
}

}  // namespace

template <class D>
Handler<D> SelectX87Function(const Insn& insn) {
  if (insn.opcode[0] != 0xd9) {
    return nullptr;
  }
  switch (insn.modrm) {
    case 0xf0:
      return &OfOne<D, F2xm1, kX87C1>;
    case 0xf1:
      return &OfTwoPop<D, Fyl2x>;
    case 0xf2:
      return &OfOneToTwo<D, FptanBelow, Fptan, kDoneConditions>;
    case 0xf3:
      return &OfTwoPop<D, Fpatan>;
    case 0xf4:
      return &OfOneToTwo<D, FxtractBelow, Fxtract, kX87C1>;
    case 0xf5:
      return &OfTwo<D, Fprem1, kX87Conditions>;
    case 0xf8:
      return &OfTwo<D, Fprem, kX87Conditions>;
    case 0xf9:
      return &OfTwoPop<D, Fyl2xp1>;
    case 0xfa:
      return &OfOne<D, Fsqrt, kX87C1>;
    case 0xfb:
      return &OfOneToTwo<D, FsincosBelow, Fsincos, kDoneConditions>;
    case 0xfc:
      return &OfOne<D, Frndint, kX87C1>;
    case 0xfd:
      return &OfTwo<D, Fscale, kX87C1>;
    case 0xfe:
      return &OfOne < D, Fsin, kX87C1 | kX87C2 > ;
    case 0xff:
      return &OfOne < D, Fcos, kX87C1 | kX87C2 > ;
    default:
      return nullptr;
  }
}

CLEW_INSTANTIATE_X87(SelectX87Function);

}  // namespace clew::machine
