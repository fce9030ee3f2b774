#ifndef CLEW_MACHINE_INSN_FAMILIES_H_
#define CLEW_MACHINE_INSN_FAMILIES_H_

#include "machine/cpu_access.h"
#include "machine/handlers.h"
#include "machine/insn.h"
#include "machine/insn/vector_families.h"
#include "machine/shadow_domain.h"

namespace clew::machine {

// One function for each file of machine/insn: adds its mnemonics.
template <class D>
void RegisterArith(HandlerTable<D>& table);
template <class D>
void RegisterLogic(HandlerTable<D>& table);
template <class D>
void RegisterShift(HandlerTable<D>& table);
template <class D>
void RegisterMuldiv(HandlerTable<D>& table);
template <class D>
void RegisterMove(HandlerTable<D>& table);
template <class D>
void RegisterStack(HandlerTable<D>& table);
template <class D>
void RegisterControl(HandlerTable<D>& table);
template <class D>
void RegisterBit(HandlerTable<D>& table);
template <class D>
void RegisterBmi(HandlerTable<D>& table);
template <class D>
void RegisterAtomic(HandlerTable<D>& table);
template <class D>
void RegisterString(HandlerTable<D>& table);
template <class D>
void RegisterSystem(HandlerTable<D>& table);

template <class D>
void RegisterAll(HandlerTable<D>& table) {
  RegisterArith(table);
  RegisterLogic(table);
  RegisterShift(table);
  RegisterMuldiv(table);
  RegisterMove(table);
  RegisterStack(table);
  RegisterControl(table);
  RegisterBit(table);
  RegisterBmi(table);
  RegisterAtomic(table);
  RegisterString(table);
  RegisterSystem(table);
  RegisterVectorFamilies(table);
}

template <class D>
Handlers<D>::Handlers(x86::FeatureSet features)
    : features_(features.Without(x86::kByHost.Without(x86::HostFeatures()))) {
  RegisterAll(table_);
  RegisterEvexFamilies(table_, evex_table_);
}

// A value of domain D.
template <class D, class U>
using Val = typename D::template V<U>;

// At the end of a family's file.
#define CLEW_INSTANTIATE_FAMILY(name)                           \
  template void name<Concrete>(HandlerTable<Concrete> & table); \
  template void name<Shadowed>(HandlerTable<Shadowed> & table)

// f<U>() for the unsigned integer of `size_bytes`; nullptr for other sizes.
template <class D, class F>
Handler<D> BySize(unsigned size_bytes, F f) {
  switch (size_bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return nullptr;
  }
}

// f<U>() for an encoding with VEX of an instruction on 4 or 8 bytes.
template <class D, class F>
Handler<D> ByVexSize(const Insn& insn, F f) {
  if (insn.vector_bytes != kVex128.size_bytes()) {
    return nullptr;
  }
  return insn.op[0].size_bytes == 8   ? f.template operator()<uint64_t>()
         : insn.op[0].size_bytes == 4 ? f.template operator()<uint32_t>()
                                      : nullptr;
}

// f<kCode>() for the condition in the low four bits of an opcode byte.
template <class D, class F, unsigned kCode = 0>
Handler<D> ByCondition(uint8_t opcode, F f) {
  if constexpr (kCode < 16) {
    return (opcode & 15) == kCode ? f.template operator()<kCode>()
                                  : ByCondition<D, F, kCode + 1>(opcode, f);
  } else {
    return nullptr;
  }
}

// The selector of an instruction with one form.
template <class D, Handler<D> kHandler>
Handler<D> Always(const Insn&) {
  return kHandler;
}

// The common shapes of integer instructions. An operation is a struct with
//   template <class D, class U> static V<U> Apply(Cpu<D>&, V<U> a, V<U> b)
// that computes the result and sets the flags; kWrites says whether the result
// is stored (CMP and TEST: no). Apply is called once all operands are read, and
// for a memory destination after the store is known to succeed.
template <class D, class U, class Op>
void BinaryReg(Cpu<D>& cpu, const Insn& insn) {
  const auto b = cpu.template GetReg<U>(insn.op[1].reg);
  const auto a = cpu.template GetReg<U>(insn.op[0].reg);
  const auto r = Op::template Apply<D, U>(cpu, a, b);
  if constexpr (Op::kWrites) {
    cpu.template SetReg<U>(insn.op[0].reg, r);
  }
}

template <class D, class U, class Op>
void BinaryRegImm(Cpu<D>& cpu, const Insn& insn) {
  const auto b = cpu.d().Const(static_cast<U>(insn.imm));
  const auto a = cpu.template GetReg<U>(insn.op[0].reg);
  const auto r = Op::template Apply<D, U>(cpu, a, b);
  if constexpr (Op::kWrites) {
    cpu.template SetReg<U>(insn.op[0].reg, r);
  }
}

template <class D, class U, class Op>
void BinaryRegMem(Cpu<D>& cpu, const Insn& insn) {
  const auto b = cpu.template Load<U>(cpu.Address(insn));
  if (cpu.faulted()) {
    return;
  }
  const auto a = cpu.template GetReg<U>(insn.op[0].reg);
  const auto r = Op::template Apply<D, U>(cpu, a, b);
  if constexpr (Op::kWrites) {
    cpu.template SetReg<U>(insn.op[0].reg, r);
  }
}

// Memory destination; LOCK makes it one access.
template <class D, class U, class Op>
void BinaryMem(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t addr = cpu.Address(insn);
  if (insn.lock) {
    const auto a = cpu.template LoadForUpdate<U>(addr);
    if (cpu.faulted()) {
      return;
    }
    const auto b = cpu.template Read<U>(insn, insn.op[1]);
    cpu.template StoreUpdate<U>(addr, Op::template Apply<D, U>(cpu, a, b));
    return;
  }
  const auto a = cpu.template Load<U>(addr);
  if (cpu.faulted() || (Op::kWrites && !cpu.CheckStore(addr, sizeof(U)))) {
    return;
  }
  const auto b = cpu.template Read<U>(insn, insn.op[1]);
  const auto r = Op::template Apply<D, U>(cpu, a, b);
  if constexpr (Op::kWrites) {
    cpu.template Store<U>(addr, r);
  }
}

template <class D, class Op>
Handler<D> SelectBinary(const Insn& insn) {
  const Operand& to = insn.op[0];
  const Operand& from = insn.op[1];
  return BySize<D>(to.size_bytes, [&]<class U>() -> Handler<D> {
    if (to.is_mem()) {
      return from.is_mem() ? nullptr : &BinaryMem<D, U, Op>;
    }
    if (!to.is_reg()) {
      return nullptr;
    }
    if (from.is_mem()) {
      return &BinaryRegMem<D, U, Op>;
    }
    if (from.is_imm()) {
      return &BinaryRegImm<D, U, Op>;
    }
    return from.is_reg() ? &BinaryReg<D, U, Op> : nullptr;
  });
}

// One operand, read and written: Apply(cpu, a).
template <class D, class U, class Op>
void Unary(Cpu<D>& cpu, const Insn& insn) {
  if (insn.op[0].is_reg()) {
    const auto a = cpu.template GetReg<U>(insn.op[0].reg);
    cpu.template SetReg<U>(insn.op[0].reg, Op::template Apply<D, U>(cpu, a));
    return;
  }
  const uint64_t addr = cpu.Address(insn);
  if (insn.lock) {
    const auto a = cpu.template LoadForUpdate<U>(addr);
    if (!cpu.faulted()) {
      cpu.template StoreUpdate<U>(addr, Op::template Apply<D, U>(cpu, a));
    }
    return;
  }
  const auto a = cpu.template Load<U>(addr);
  if (!cpu.faulted() && cpu.CheckStore(addr, sizeof(U))) {
    cpu.template Store<U>(addr, Op::template Apply<D, U>(cpu, a));
  }
}

template <class D, class Op>
Handler<D> SelectUnary(const Insn& insn) {
  if (!insn.op[0].is_mem() && !insn.op[0].is_reg()) {
    return nullptr;
  }
  return BySize<D>(insn.op[0].size_bytes,
                   []<class U>() { return &Unary<D, U, Op>; });
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_INSN_FAMILIES_H_
