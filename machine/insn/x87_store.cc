// FST, FSTP, FIST, FISTP, FISTTP, FBSTP to memory. Memory is written first: a
// fault leaves the stack as it was.

#include "machine/insn/x87_common.h"

namespace clew::machine {
namespace {

// What an empty st(0) stores, with all exceptions masked.
template <class U>
constexpr U kIndefinite = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
constexpr uint32_t kIndefiniteFloat32 = 0xffc00000;
constexpr uint64_t kIndefiniteFloat64 = 0xfff8000000000000;
constexpr Float80 kIndefiniteBcd = kX87Indefinite;  // the same ten bytes

template <class U>
using ToMemory = U (*)(const Float80& value, X87Env& env);

template <class D, class U>
bool StoreBits(Cpu<D>& cpu, const Insn& insn, U bits) {
  return cpu.template Store<U>(cpu.Address(insn), cpu.d().Const(bits));
}

template <class D>
bool StoreBits(Cpu<D>& cpu, const Insn& insn, const Float80& bits) {
  return StoreTenBytes(cpu, insn, bits);
}

template <class D, class U, ToMemory<U> kConvert, U kIfEmpty, bool kPop>
void StoreConverted(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  X87Env env = {.control = stack.control()};
  const bool empty = stack.empty(0);
  const U bits = empty ? kIfEmpty : kConvert(stack.st(0), env);
  if (!StoreBits(cpu, insn, bits)) {
    return;
  }
  if (empty) {
    stack.StackUnderflow();
  } else {
    stack.Note(env.status, kX87C1);
  }
  if (kPop) {
    stack.Pop();
  }
}

Float80 Unchanged(const Float80& value, X87Env&) { return value; }

}  // namespace

template <class D>
Handler<D> SelectX87Store(const Insn& insn) {
  if (IsRegisterForm(insn)) {
    return nullptr;
  }
  constexpr auto k16 = kIndefinite<uint16_t>;
  constexpr auto k32 = kIndefinite<uint32_t>;
  constexpr auto k64 = kIndefinite<uint64_t>;
  constexpr auto kF32 = kIndefiniteFloat32;
  constexpr auto kF64 = kIndefiniteFloat64;
  switch (unsigned{insn.opcode[0]} << 4 | RegField(insn)) {
    case 0xd92:
      return &StoreConverted<D, uint32_t, ToFloat32, kF32, false>;
    case 0xd93:
      return &StoreConverted<D, uint32_t, ToFloat32, kF32, true>;
    case 0xdd2:
      return &StoreConverted<D, uint64_t, ToFloat64, kF64, false>;
    case 0xdd3:
      return &StoreConverted<D, uint64_t, ToFloat64, kF64, true>;
    case 0xdb7:
      return &StoreConverted<D, Float80, Unchanged, kX87Indefinite, true>;
    case 0xdb1:
      return &StoreConverted<D, uint32_t, TruncateToInt32, k32, true>;
    case 0xdb2:
      return &StoreConverted<D, uint32_t, ToInt32, k32, false>;
    case 0xdb3:
      return &StoreConverted<D, uint32_t, ToInt32, k32, true>;
    case 0xdd1:
      return &StoreConverted<D, uint64_t, TruncateToInt64, k64, true>;
    case 0xdf1:
      return &StoreConverted<D, uint16_t, TruncateToInt16, k16, true>;
    case 0xdf2:
      return &StoreConverted<D, uint16_t, ToInt16, k16, false>;
    case 0xdf3:
      return &StoreConverted<D, uint16_t, ToInt16, k16, true>;
    case 0xdf6:
      return &StoreConverted<D, Float80, ToBcd, kIndefiniteBcd, true>;
    case 0xdf7:
      return &StoreConverted<D, uint64_t, ToInt64, k64, true>;
    default:
      return nullptr;
  }
}

CLEW_INSTANTIATE_X87(SelectX87Store);

}  // namespace clew::machine
