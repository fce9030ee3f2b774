// FLD, FILD, FBLD from memory, and constants.

#include "machine/insn/x87_common.h"

namespace clew::machine {
namespace {

template <class D, X87Format kFormat>
void LoadFromMemory(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  X87Env env = {.control = stack.control()};
  const Float80 value = LoadOperand<kFormat>(cpu, insn, env);
  if (cpu.faulted()) {
    return;
  }
  // A stack overflow comes before what the conversion would raise.
  stack.Note(stack.empty(7) ? env.status & kX87Exceptions : 0, kX87C1);
  stack.Push(value);
}

template <class D, X87Constant kConstant>
void LoadConstant(Cpu<D>& cpu, const Insn&) {
  X87Stack stack(cpu.regs().x87);
  X87Env env = {.control = stack.control()};
  const Float80 value = kConstant(env);
  stack.Note(0, kX87C1);
  stack.Push(value);
}

template <class D>
Handler<D> SelectConstant(const Insn& insn) {  // D9 E8..EE
  switch (insn.modrm) {
    case 0xe8:
      return &LoadConstant<D, Fld1>;
    case 0xe9:
      return &LoadConstant<D, Fldl2t>;
    case 0xea:
      return &LoadConstant<D, Fldl2e>;
    case 0xeb:
      return &LoadConstant<D, Fldpi>;
    case 0xec:
      return &LoadConstant<D, Fldlg2>;
    case 0xed:
      return &LoadConstant<D, Fldln2>;
    case 0xee:
      return &LoadConstant<D, Fldz>;
    default:
      return nullptr;
  }
}

}  // namespace

template <class D>
Handler<D> SelectX87Load(const Insn& insn) {
  if (IsRegisterForm(insn)) {
    return insn.opcode[0] == 0xd9 ? SelectConstant<D>(insn) : nullptr;
  }
  switch (unsigned{insn.opcode[0]} << 4 | RegField(insn)) {
    case 0xd90:
      return &LoadFromMemory<D, X87Format::kFloat32>;
    case 0xdb0:
      return &LoadFromMemory<D, X87Format::kInt32>;
    case 0xdb5:
      return &LoadFromMemory<D, X87Format::kFloat80>;
    case 0xdd0:
      return &LoadFromMemory<D, X87Format::kFloat64>;
    case 0xdf0:
      return &LoadFromMemory<D, X87Format::kInt16>;
    case 0xdf4:
      return &LoadFromMemory<D, X87Format::kBcd>;
    case 0xdf5:
      return &LoadFromMemory<D, X87Format::kInt64>;
    default:
      return nullptr;
  }
}

CLEW_INSTANTIATE_X87(SelectX87Load);

}  // namespace clew::machine
