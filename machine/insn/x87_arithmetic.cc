// FADD, FMUL, FSUB, FSUBR, FDIV, FDIVR: all operand formats, popping or not.

#include "machine/insn/x87_common.h"

namespace clew::machine {
namespace {

// a is st(0), b the other operand, whichever of them is the destination: the
// encoding calls the reversed form FSUBR in one direction and FSUB in the
// other, but reg field 4 is st(0) - b in both.
template <class D, X87Binary kOp, X87Format kFormat>
void Arithmetic(Cpu<D>& cpu, const Insn& insn) {
  constexpr bool kRegister = kFormat == X87Format::kRegister;
  X87Stack stack(cpu.regs().x87);
  X87Env loading = {.control = stack.control()};
  X87Env env = loading;
  const unsigned i = kRegister ? StIndex(insn) : 0;
  const Float80 b =
      kRegister ? stack.st(i) : LoadOperand<kFormat>(cpu, insn, loading);
  if (cpu.faulted()) {
    return;
  }
  // DC and DE write st(i), DE pops.
  const unsigned to = kRegister && insn.opcode[0] != 0xd8 ? i : 0;
  if (stack.AnyEmpty(0, i)) {
    stack.Set(to, kX87Indefinite);
    stack.StackUnderflow();
  } else {
    stack.Set(to, kOp(stack.st(0), b, env));
    stack.Note(loading.status & kX87Exceptions, 0);
    stack.Note(env.status, kX87C1);
  }
  if (kRegister && insn.opcode[0] == 0xde) {
    stack.Pop();
  }
}

template <class D, X87Format kFormat>
Handler<D> SelectOperation(const Insn& insn) {
  switch (RegField(insn)) {
    case 0:
      return &Arithmetic<D, Fadd, kFormat>;
    case 1:
      return &Arithmetic<D, Fmul, kFormat>;
    case 4:
      return &Arithmetic<D, Fsub, kFormat>;
    case 5:
      return &Arithmetic<D, Fsubr, kFormat>;
    case 6:
      return &Arithmetic<D, Fdiv, kFormat>;
    case 7:
      return &Arithmetic<D, Fdivr, kFormat>;
    default:
      return nullptr;
  }
}

}  // namespace

template <class D>
Handler<D> SelectX87Arithmetic(const Insn& insn) {
  const bool reg = IsRegisterForm(insn);
  switch (insn.opcode[0]) {
    case 0xd8:
      return reg ? SelectOperation<D, X87Format::kRegister>(insn)
                 : SelectOperation<D, X87Format::kFloat32>(insn);
    case 0xda:
      return reg ? nullptr : SelectOperation<D, X87Format::kInt32>(insn);
    case 0xdc:
      return reg ? SelectOperation<D, X87Format::kRegister>(insn)
                 : SelectOperation<D, X87Format::kFloat64>(insn);
    case 0xde:
      return reg ? SelectOperation<D, X87Format::kRegister>(insn)
                 : SelectOperation<D, X87Format::kInt16>(insn);
    default:
      return nullptr;
  }
}

CLEW_INSTANTIATE_X87(SelectX87Arithmetic);

}  // namespace clew::machine
