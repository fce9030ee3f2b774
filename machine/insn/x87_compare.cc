// FCOM, FUCOM, FCOMI, FUCOMI with their popping forms, FICOM, FTST, FXAM.

#include "machine/insn/x87_common.h"

namespace clew::machine {
namespace {

constexpr uint16_t kUnordered = kX87C0 | kX87C2 | kX87C3;

void FinishEmpty(X87Stack& stack) {
  stack.StackUnderflow();
  stack.Note(kUnordered, kUnordered);
}

template <class D, X87Compare kOp, unsigned kPops>
void WithRegister(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  const unsigned i = StIndex(insn);
  if (stack.AnyEmpty(0, i)) {
    FinishEmpty(stack);
  } else {
    X87Env env = {.control = stack.control()};
    kOp(stack.st(0), stack.st(i), env);
    stack.Note(env.status, kX87Conditions);
  }
  for (unsigned n = 0; n < kPops; ++n) {
    stack.Pop();
  }
}

// FCOM and FICOM with memory.
template <class D, X87Format kFormat>
void CompareWithMemory(Cpu<D>& cpu, const Insn& insn, X87Stack& stack) {
  X87Env env = {.control = stack.control()};
  if constexpr (kFormat == X87Format::kFloat32) {
    FcomMemory(stack.st(0), LoadPlain<D, uint32_t>(cpu, insn), env);
  } else if constexpr (kFormat == X87Format::kFloat64) {
    FcomMemory(stack.st(0), LoadPlain<D, uint64_t>(cpu, insn), env);
  } else {
    Fcom(stack.st(0), LoadOperand<kFormat>(cpu, insn, env), env);
  }
  if (cpu.faulted()) {
    return;
  }
  if (stack.empty(0)) {
    FinishEmpty(stack);
  } else {
    stack.Note(env.status, kX87Conditions);
  }
}

template <class D, X87Format kFormat, bool kPop>
void WithMemory(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  CompareWithMemory<D, kFormat>(cpu, insn, stack);
  if (kPop && !cpu.faulted()) {
    stack.Pop();
  }
}

uint64_t FlagsOf(uint16_t conditions) {
  return ((conditions & kX87C3) ? kFlagZero : 0) |
         ((conditions & kX87C2) ? kFlagParity : 0) |
         ((conditions & kX87C0) ? kFlagCarry : 0);
}

template <class D, X87Compare kOp, bool kPop>
void WithFlags(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  const unsigned i = StIndex(insn);
  X87Env env = {.control = stack.control(), .status = kUnordered};
  if (stack.AnyEmpty(0, i)) {
    stack.StackUnderflow();
  } else {
    kOp(stack.st(0), stack.st(i), env);
    stack.Note(env.status, 0);
  }
  cpu.flags().SetAll(FlagsOf(env.status));
  if (kPop) {
    stack.Pop();
  }
}

template <class D>
void TestForZero(Cpu<D>& cpu, const Insn&) {
  X87Stack stack(cpu.regs().x87);
  X87Env env = {.control = stack.control()};
  if (stack.empty(0)) {
    stack.StackUnderflow();
    stack.Note(kUnordered, kUnordered);
    return;
  }
  Fcom(stack.st(0), Float80{}, env);
  stack.Note(env.status, kX87Conditions);
}

template <class D>
void Examine(Cpu<D>& cpu, const Insn&) {
  X87Stack stack(cpu.regs().x87);
  X87Env env = {.control = stack.control()};
  Fxam(stack.st(0), env);
  if (stack.empty(0)) {
    env.status = static_cast<uint16_t>((env.status & kX87C1) | kX87C3 | kX87C0);
  }
  stack.Note(env.status & kX87Conditions, kX87Conditions);
}

// FCOM is reg field 2, FCOMP 3, in each of the arithmetic opcodes.
template <class D, X87Format kFormat>
Handler<D> SelectOrdered(const Insn& insn) {
  switch (RegField(insn)) {
    case 2:
      return &WithMemory<D, kFormat, false>;
    case 3:
      return &WithMemory<D, kFormat, true>;
    default:
      return nullptr;
  }
}

template <class D>
Handler<D> SelectOrderedRegister(const Insn& insn) {  // D8
  switch (RegField(insn)) {
    case 2:
      return &WithRegister<D, Fcom, 0>;
    case 3:
      return &WithRegister<D, Fcom, 1>;
    default:
      return nullptr;
  }
}

template <class D>
Handler<D> SelectFromMemory(const Insn& insn) {
  switch (insn.opcode[0]) {
    case 0xd8:
      return SelectOrdered<D, X87Format::kFloat32>(insn);
    case 0xda:
      return SelectOrdered<D, X87Format::kInt32>(insn);
    case 0xdc:
      return SelectOrdered<D, X87Format::kFloat64>(insn);
    case 0xde:
      return SelectOrdered<D, X87Format::kInt16>(insn);
    default:
      return nullptr;
  }
}

template <class D>
Handler<D> SelectUnordered(const Insn& insn) {  // DD /4, /5
  switch (RegField(insn)) {
    case 4:
      return &WithRegister<D, Fucom, 0>;
    case 5:
      return &WithRegister<D, Fucom, 1>;
    default:
      return nullptr;
  }
}

template <class D, bool kPop>
Handler<D> SelectToFlags(const Insn& insn) {  // DB, DF
  switch (RegField(insn)) {
    case 5:
      return &WithFlags<D, Fucom, kPop>;
    case 6:
      return &WithFlags<D, Fcom, kPop>;
    default:
      return nullptr;
  }
}

template <class D>
Handler<D> SelectSingle(const Insn& insn) {
  switch (insn.opcode[0] << 8 | insn.modrm) {
    case 0xd9e4:
      return &TestForZero<D>;
    case 0xd9e5:
      return &Examine<D>;
    case 0xdae9:
      return &WithRegister<D, Fucom, 2>;
    case 0xded9:
      return &WithRegister<D, Fcom, 2>;
    default:
      return nullptr;
  }
}

}  // namespace

template <class D>
Handler<D> SelectX87Compare(const Insn& insn) {
  if (!IsRegisterForm(insn)) {
    return SelectFromMemory<D>(insn);
  }
  switch (insn.opcode[0]) {
    case 0xd8:
      return SelectOrderedRegister<D>(insn);
    case 0xdb:
      return SelectToFlags<D, false>(insn);
    case 0xdd:
      return SelectUnordered<D>(insn);
    case 0xdf:
      return SelectToFlags<D, true>(insn);
    default:
      return SelectSingle<D>(insn);
  }
}

CLEW_INSTANTIATE_X87(SelectX87Compare);

}  // namespace clew::machine
