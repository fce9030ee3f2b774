// PUSH, POP, ENTER, LEAVE, PUSHF, POPF.

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

// What POPF changes in user mode. Source: Intel SDM vol. 2, "POPF/POPFD/POPFQ".
constexpr uint64_t kPopfChanges = kFlagsArithmetic | kFlagTrap |
                                  kFlagDirection | kFlagId | (1u << 14) |
                                  (1u << 18);

template <class D>
uint64_t StackPointer(Cpu<D>& cpu) {
  return cpu.d().ConcretiseAddress(cpu.template GetReg<uint64_t>(8 * kRsp));
}

template <class D>
void SetStackPointer(Cpu<D>& cpu, uint64_t value) {
  cpu.template SetReg<uint64_t>(8 * kRsp, cpu.d().Const(value));
}

template <class D, class U>
void PushValue(Cpu<D>& cpu, Val<D, U> value) {
  const uint64_t addr = StackPointer(cpu) - sizeof(U);
  if (cpu.template Store<U>(addr, value)) {
    SetStackPointer(cpu, addr);
  }
}

template <class D, class U>
void Push(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template Read<U>(insn, insn.op[0]);
  if (!cpu.faulted()) {
    PushValue<D, U>(cpu, value);
  }
}

// The operand's size as Capstone gives it is not that of the slot.
template <class D>
Handler<D> SelectPush(const Insn& insn) {
  const OperandKind kind = insn.op[0].kind;
  if (kind == OperandKind::kOther) {
    return nullptr;
  }
  return insn.operand_size_bytes == 2 ? &Push<D, uint16_t> : &Push<D, uint64_t>;
}

// A memory operand based on rsp is addressed with rsp as it is afterwards.
template <class D, class U>
void Pop(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t rsp = StackPointer(cpu);
  const auto value = cpu.template Load<U>(rsp);
  if (cpu.faulted()) {
    return;
  }
  if (insn.op[0].is_reg()) {
    SetStackPointer(cpu, rsp + sizeof(U));
    cpu.template SetReg<U>(insn.op[0].reg, value);
    return;
  }
  SetStackPointer(cpu, rsp + sizeof(U));
  if (!cpu.template Store<U>(cpu.Address(insn), value)) {
    SetStackPointer(cpu, rsp);
  }
}

template <class D>
Handler<D> SelectPop(const Insn& insn) {
  if (insn.op[0].kind == OperandKind::kOther) {
    return nullptr;
  }
  return insn.operand_size_bytes == 2 ? &Pop<D, uint16_t> : &Pop<D, uint64_t>;
}

template <class D>
void Leave(Cpu<D>& cpu, const Insn&) {
  const uint64_t frame =
      cpu.d().ConcretiseAddress(cpu.template GetReg<uint64_t>(8 * kRbp));
  const auto value = cpu.template Load<uint64_t>(frame);
  if (!cpu.faulted()) {
    SetStackPointer(cpu, frame + 8);
    cpu.template SetReg<uint64_t>(8 * kRbp, value);
  }
}

template <class D>
Handler<D> SelectLeave(const Insn& insn) {
  return insn.operand_size_bytes == 2 ? nullptr : &Leave<D>;
}

// Only nesting level 0: no compiler makes others.
template <class D>
void Enter(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t frame = StackPointer(cpu) - 8;
  const uint64_t locals = static_cast<uint64_t>(insn.imm) & 0xffff;
  // The CPU also checks that the new top of the stack can be written.
  if (!cpu.CheckStore(frame - locals, 1)) {
    return;
  }
  if (cpu.template Store<uint64_t>(frame,
                                   cpu.template GetReg<uint64_t>(8 * kRbp))) {
    cpu.template SetReg<uint64_t>(8 * kRbp, cpu.d().Const(frame));
    SetStackPointer(cpu, frame - locals);
  }
}

template <class D>
Handler<D> SelectEnter(const Insn& insn) {
  const bool nested = (insn.imm >> 16 & 0x1f) != 0;
  return nested || insn.operand_size_bytes == 2 ? nullptr : &Enter<D>;
}

template <class D, class U>
void Pushf(Cpu<D>& cpu, const Insn&) {
  cpu.flags().ConcretiseAll();
  const uint64_t image = cpu.regs().rflags & ~uint64_t{0x30000};  // RF, VM
  PushValue<D, U>(cpu, cpu.d().Const(static_cast<U>(image)));
}

template <class D>
Handler<D> SelectPushf(const Insn& insn) {
  return insn.operand_size_bytes == 2 ? &Pushf<D, uint16_t>
                                      : &Pushf<D, uint64_t>;
}

// Single-stepping oneself (TF) is not supported.
template <class D, class U>
void Popf(Cpu<D>& cpu, const Insn&) {
  const uint64_t rsp = StackPointer(cpu);
  const uint64_t image = cpu.d().Concretise(cpu.template Load<U>(rsp));
  if (cpu.faulted()) {
    return;
  }
  if ((image & kFlagTrap) != 0) {
    cpu.StopUnsupported();
    return;
  }
  const uint64_t changes =
      sizeof(U) == 2 ? kPopfChanges & 0xffff : kPopfChanges;
  cpu.flags().SetAll(image);
  uint64_t& rflags = cpu.regs().rflags;
  rflags = (rflags & ~changes) | (image & changes);
  SetStackPointer(cpu, rsp + sizeof(U));
}

template <class D>
Handler<D> SelectPopf(const Insn& insn) {
  return insn.operand_size_bytes == 2 ? &Popf<D, uint16_t> : &Popf<D, uint64_t>;
}

}  // namespace

template <class D>
void RegisterStack(HandlerTable<D>& table) {
  table["push"] = SelectPush<D>;
  table["pop"] = SelectPop<D>;
  table["leave"] = SelectLeave<D>;
  table["enter"] = SelectEnter<D>;
  table["pushf"] = SelectPushf<D>;
  table["pushfq"] = SelectPushf<D>;
  table["popf"] = SelectPopf<D>;
  table["popfq"] = SelectPopf<D>;
}

CLEW_INSTANTIATE_FAMILY(RegisterStack);

}  // namespace clew::machine
