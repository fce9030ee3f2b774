// Moves within the x87 stack: FLD st(i), FST st(i), FXCH, FCMOVcc, FCHS, FABS,
// FFREE, FINCSTP, FDECSTP.

#include "machine/insn/x87_common.h"

namespace clew::machine {
namespace {

template <class D>
void Duplicate(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  const unsigned i = StIndex(insn);
  const bool underflow = stack.empty(i);
  const Float80 value = underflow ? kX87Indefinite : stack.st(i);
  stack.Note(0, kX87C1);
  stack.Push(value);
  if (underflow) {
    stack.StackUnderflow();
  }
}

template <class D, bool kPop>
void CopyTo(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  const unsigned i = StIndex(insn);
  if (stack.empty(0)) {
    stack.StackUnderflow();
    stack.Set(i, kX87Indefinite);
  } else {
    stack.Note(0, kX87C1);
    stack.Set(i, stack.st(0));
  }
  if (kPop) {
    stack.Pop();
  }
}

template <class D>
void Exchange(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  const unsigned i = StIndex(insn);
  const Float80 a = stack.empty(0) ? kX87Indefinite : stack.st(0);
  const Float80 b = stack.empty(i) ? kX87Indefinite : stack.st(i);
  stack.Note(0, kX87C1);
  if (stack.AnyEmpty(0, i)) {
    stack.StackUnderflow();
  }
  stack.Set(0, b);
  stack.Set(i, a);
}

// FCHS and FABS.
template <class D, uint16_t kKeep, uint16_t kFlip>
void ChangeSign(Cpu<D>& cpu, const Insn&) {
  X87Stack stack(cpu.regs().x87);
  if (stack.empty(0)) {
    stack.StackUnderflow();
    stack.Set(0, kX87Indefinite);
    return;
  }
  Float80 value = stack.st(0);
  value.sign_exponent =
      static_cast<uint16_t>((value.sign_exponent & kKeep) ^ kFlip);
  stack.Note(0, kX87C1);
  stack.Set(0, value);
}

// The low two bits of FCMOVcc's reg field, and DB for the negated ones.
template <class D>
bool Condition(Cpu<D>& cpu, unsigned code) {
  auto& flags = cpu.flags();
  switch (code) {
    case 0:
      return cpu.d().Concretise(flags.template Condition<2>());  // below
    case 1:
      return cpu.d().Concretise(flags.template Condition<4>());  // equal
    case 2:
      return cpu.d().Concretise(flags.template Condition<6>());  // either
    default:
      return cpu.d().Concretise(flags.template Condition<10>());  // unordered
  }
}

template <class D>
void MoveIf(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  const unsigned i = StIndex(insn);
  if (stack.AnyEmpty(0, i)) {
    stack.StackUnderflow();
    stack.Set(0, kX87Indefinite);
    return;
  }
  const bool negated = insn.opcode[0] == 0xdb;
  if (Condition(cpu, RegField(insn)) != negated) {
    stack.Set(0, stack.st(i));
  }
}

template <class D, unsigned kBy>
void RotateTop(Cpu<D>& cpu, const Insn&) {
  X87Stack stack(cpu.regs().x87);
  stack.Note(0, kX87C1);
  stack.Rotate(kBy);
}

template <class D, bool kPop>
void FreeRegister(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  stack.Free(StIndex(insn));
  if (kPop) {
    stack.Pop();
  }
}

template <class D>
Handler<D> SelectD9(const Insn& insn) {
  switch (insn.modrm) {
    case 0xe0:
      return &ChangeSign<D, 0xffff, 0x8000>;
    case 0xe1:
      return &ChangeSign<D, 0x7fff, 0>;
    case 0xf6:
      return &RotateTop<D, 7>;
    case 0xf7:
      return &RotateTop<D, 1>;
    default:
      break;
  }
  switch (RegField(insn)) {
    case 0:
      return &Duplicate<D>;
    case 1:
      return &Exchange<D>;
    default:
      return nullptr;
  }
}

template <class D>
Handler<D> SelectDd(const Insn& insn) {
  switch (RegField(insn)) {
    case 0:
      return &FreeRegister<D, false>;
    case 2:
      return &CopyTo<D, false>;
    case 3:
      return &CopyTo<D, true>;
    default:
      return nullptr;
  }
}

}  // namespace

template <class D>
Handler<D> SelectX87Register(const Insn& insn) {
  if (!IsRegisterForm(insn)) {
    return nullptr;
  }
  switch (insn.opcode[0]) {
    case 0xd9:
      return SelectD9<D>(insn);
    case 0xda:
    case 0xdb:
      return RegField(insn) < 4 ? &MoveIf<D> : nullptr;
    case 0xdd:
      return SelectDd<D>(insn);
    case 0xdf:  // FFREEP
      return RegField(insn) == 0 ? &FreeRegister<D, true> : nullptr;
    default:
      return nullptr;
  }
}

CLEW_INSTANTIATE_X87(SelectX87Register);

}  // namespace clew::machine
