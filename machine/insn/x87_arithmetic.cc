// FADD, FMUL, FSUB, FSUBR, FDIV, FDIVR: all operand formats, popping or not.

#include "machine/insn/x87_common.h"

namespace clew::machine {
namespace {

// The reg field of ModRM names the operation, the same in each opcode. b is the
// operand that is not st(0), whichever is the destination: the encoding calls
// the reversed form FSUBR in one direction and FSUB in the other, but field 4
// is st(0) - b in both.

void Finish(X87Stack& stack, unsigned to, const Float80& result,
            const X87Env& env) {
  stack.Set(to, result);
  stack.Note(env.status, kX87C1);
}

void FinishEmpty(X87Stack& stack, unsigned to) {
  stack.Set(to, kX87Indefinite);
  stack.StackUnderflow();
}

// st(0) or st(i) = st(0) op st(i). DC and DE write st(i), DE pops.
template <class D, X87Binary kOp>
void WithRegister(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  const unsigned i = StIndex(insn);
  const unsigned to = insn.opcode[0] == 0xd8 ? 0 : i;
  if (stack.AnyEmpty(0, i)) {
    FinishEmpty(stack, to);
  } else {
    X87Env env = {.control = stack.control()};
    const Float80 result = kOp(stack.st(0), stack.st(i), env);
    Finish(stack, to, result, env);
  }
  if (insn.opcode[0] == 0xde) {
    stack.Pop();
  }
}

// st(0) = st(0) op float32 or float64.
template <class D, class U, X87Memory<U> kOp>
void WithFloat(Cpu<D>& cpu, const Insn& insn) {
  const U bits = LoadPlain<D, U>(cpu, insn);
  if (cpu.faulted()) {
    return;
  }
  X87Stack stack(cpu.regs().x87);
  if (stack.empty(0)) {
    FinishEmpty(stack, 0);
    return;
  }
  X87Env env = {.control = stack.control()};
  const Float80 result = kOp(stack.st(0), bits, env);
  Finish(stack, 0, result, env);
}

// st(0) = st(0) op integer, whose conversion is exact.
template <class D, X87Binary kOp, X87Format kFormat>
void WithInteger(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  X87Env env = {.control = stack.control()};
  const Float80 b = LoadOperand<kFormat>(cpu, insn, env);
  if (cpu.faulted()) {
    return;
  }
  if (stack.empty(0)) {
    FinishEmpty(stack, 0);
    return;
  }
  const Float80 result = kOp(stack.st(0), b, env);
  Finish(stack, 0, result, env);
}

template <class D, X87Format kFormat, X87Binary kOp, X87Memory<uint32_t> k32,
          X87Memory<uint64_t> k64>
constexpr Handler<D> ForFormat() {
  switch (kFormat) {
    case X87Format::kRegister:
      return &WithRegister<D, kOp>;
    case X87Format::kFloat32:
      return &WithFloat<D, uint32_t, k32>;
    case X87Format::kFloat64:
      return &WithFloat<D, uint64_t, k64>;
    default:
      return &WithInteger<D, kOp, kFormat>;
  }
}

template <class D, X87Format kFormat>
Handler<D> SelectOperation(const Insn& insn) {
  switch (RegField(insn)) {
    case 0:
      return ForFormat<D, kFormat, Fadd, FaddMemory, FaddMemory>();
    case 1:
      return ForFormat<D, kFormat, Fmul, FmulMemory, FmulMemory>();
    case 4:
      return ForFormat<D, kFormat, Fsub, FsubMemory, FsubMemory>();
    case 5:
      return ForFormat<D, kFormat, Fsubr, FsubrMemory, FsubrMemory>();
    case 6:
      return ForFormat<D, kFormat, Fdiv, FdivMemory, FdivMemory>();
    case 7:
      return ForFormat<D, kFormat, Fdivr, FdivrMemory, FdivrMemory>();
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
