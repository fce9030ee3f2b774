#ifndef CLEW_MACHINE_INSN_X87_COMMON_H_
#define CLEW_MACHINE_INSN_X87_COMMON_H_

#include <cstring>

#include "machine/insn/families.h"
#include "machine/insn/x87_stack.h"

namespace clew::machine {

// x87 instructions are selected by opcode and ModRM alone (Intel SDM vol. 2,
// "Escape Opcode Instruction Set"), never by operands or their order. Each
// function selects from one file; nullptr: not one of its instructions.
template <class D>
Handler<D> SelectX87Arithmetic(const Insn& insn);
template <class D>
Handler<D> SelectX87Compare(const Insn& insn);
template <class D>
Handler<D> SelectX87Load(const Insn& insn);
template <class D>
Handler<D> SelectX87Store(const Insn& insn);
template <class D>
Handler<D> SelectX87Register(const Insn& insn);
template <class D>
Handler<D> SelectX87Function(const Insn& insn);
template <class D>
Handler<D> SelectX87Control(const Insn& insn);

#define CLEW_INSTANTIATE_X87(name)                        \
  template Handler<Concrete> name<Concrete>(const Insn&); \
  template Handler<Shadowed> name<Shadowed>(const Insn&)

inline bool IsRegisterForm(const Insn& insn) { return insn.modrm >= 0xc0; }
inline unsigned RegField(const Insn& insn) { return (insn.modrm >> 3) & 7u; }
inline unsigned StIndex(const Insn& insn) { return insn.modrm & 7u; }

// Where an operand is and in which format.
enum class X87Format : uint8_t {
  kRegister,
  kFloat32,
  kFloat64,
  kFloat80,
  kInt16,
  kInt32,
  kInt64,
  kBcd,
};

// Ten bytes of memory as they are.
template <class D>
Float80 LoadTenBytes(Cpu<D>& cpu, const Insn& insn) {
  std::array<std::byte, 10> bytes = {};
  cpu.LoadBytes(cpu.Address(insn), bytes);
  Float80 value;
  std::memcpy(&value.significand, bytes.data(), 8);
  std::memcpy(&value.sign_exponent, bytes.data() + 8, 2);
  return value;
}

template <class D>
bool StoreTenBytes(Cpu<D>& cpu, const Insn& insn, const Float80& value) {
  std::array<std::byte, 10> bytes;
  std::memcpy(bytes.data(), &value.significand, 8);
  std::memcpy(bytes.data() + 8, &value.sign_exponent, 2);
  return cpu.StoreBytes(cpu.Address(insn), bytes);
}

template <class D, class U>
U LoadPlain(Cpu<D>& cpu, const Insn& insn) {
  return cpu.d().Concretise(cpu.template Load<U>(cpu.Address(insn)));
}

// The memory operand, converted; env.status is what the conversion raised. May
// fault.
template <X87Format kFormat, class D>
Float80 LoadOperand(Cpu<D>& cpu, const Insn& insn, X87Env& env) {
  if constexpr (kFormat == X87Format::kFloat32) {
    return FromFloat32(LoadPlain<D, uint32_t>(cpu, insn), env);
  } else if constexpr (kFormat == X87Format::kFloat64) {
    return FromFloat64(LoadPlain<D, uint64_t>(cpu, insn), env);
  } else if constexpr (kFormat == X87Format::kInt16) {
    return FromInt16(LoadPlain<D, uint16_t>(cpu, insn), env);
  } else if constexpr (kFormat == X87Format::kInt32) {
    return FromInt32(LoadPlain<D, uint32_t>(cpu, insn), env);
  } else if constexpr (kFormat == X87Format::kInt64) {
    return FromInt64(LoadPlain<D, uint64_t>(cpu, insn), env);
  } else if constexpr (kFormat == X87Format::kBcd) {
    return FromBcd(LoadTenBytes(cpu, insn), env);
  } else {
    return LoadTenBytes(cpu, insn);
  }
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_INSN_X87_COMMON_H_
