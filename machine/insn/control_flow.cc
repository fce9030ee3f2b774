// JMP, Jcc, CALL, RET, LOOP, JRCXZ, SYSCALL, INT3.

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

template <class D>
void JmpDirect(Cpu<D>& cpu, const Insn& insn) {
  cpu.Jump(static_cast<uint64_t>(insn.imm));
}

// A target that is not canonical faults at the jump.
template <class D>
bool CanJump(Cpu<D>& cpu, uint64_t target) {
  if (!IsCanonical(target)) {
    cpu.Raise(FaultKind::kGeneral, target);
  }
  return !cpu.faulted();
}

template <class D>
void JmpIndirect(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t target =
      cpu.d().ConcretiseAddress(cpu.template Read<uint64_t>(insn, insn.op[0]));
  if (!cpu.faulted() && CanJump(cpu, target)) {
    cpu.Jump(target);
  }
}

template <class D>
void CallDirect(Cpu<D>& cpu, const Insn& insn) {
  cpu.Push(cpu.d().Const(insn.next_ip()));
  if (!cpu.faulted()) {
    cpu.Jump(static_cast<uint64_t>(insn.imm));
  }
}

template <class D>
void CallIndirect(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t target =
      cpu.d().ConcretiseAddress(cpu.template Read<uint64_t>(insn, insn.op[0]));
  if (cpu.faulted() || !CanJump(cpu, target)) {
    return;
  }
  cpu.Push(cpu.d().Const(insn.next_ip()));
  if (!cpu.faulted()) {
    cpu.Jump(target);
  }
}

// The operand size of near transfers is 64 bits; with 66 alone CPUs differ:
// refused.
template <class D>
Handler<D> SelectTransfer(const Insn& insn, Handler<D> direct,
                          Handler<D> indirect) {
  if (insn.operand_size_bytes == 2) {
    return nullptr;
  }
  if (insn.op[0].is_imm()) {
    return direct;
  }
  const unsigned group = insn.modrm >> 3 & 7;
  const bool far = group == 3 || group == 5;
  return far || insn.opcode[0] != 0xff ? nullptr : indirect;
}

template <class D>
Handler<D> SelectJmp(const Insn& insn) {
  return SelectTransfer<D>(insn, &JmpDirect<D>, &JmpIndirect<D>);
}

template <class D>
Handler<D> SelectCall(const Insn& insn) {
  return SelectTransfer<D>(insn, &CallDirect<D>, &CallIndirect<D>);
}

template <class D>
void Ret(Cpu<D>& cpu, const Insn& insn) {
  D& d = cpu.d();
  const uint64_t rsp =
      d.ConcretiseAddress(cpu.template GetReg<uint64_t>(8 * kRsp));
  const uint64_t target = d.ConcretiseAddress(cpu.template Load<uint64_t>(rsp));
  if (!cpu.faulted() && CanJump(cpu, target)) {
    const uint64_t extra = static_cast<uint64_t>(insn.imm) & 0xffff;
    cpu.template SetReg<uint64_t>(8 * kRsp, d.Const(rsp + 8 + extra));
    cpu.Jump(target);
  }
}

template <class D>
Handler<D> SelectRet(const Insn& insn) {
  const bool near = insn.opcode[0] == 0xc2 || insn.opcode[0] == 0xc3;
  return near && insn.operand_size_bytes != 2 ? &Ret<D> : nullptr;
}

// The target of a branch not taken stays what the run loop set: the next
// instruction.
template <class D, unsigned kCode>
void Jcc(Cpu<D>& cpu, const Insn& insn) {
  if (cpu.Decide(cpu.flags().template Condition<kCode>())) {
    cpu.Jump(static_cast<uint64_t>(insn.imm));
  }
}

template <class D>
Handler<D> SelectJcc(const Insn& insn) {
  if (insn.operand_size_bytes == 2) {
    return nullptr;
  }
  const uint8_t code = insn.opcode[0] == 0x0f ? insn.opcode[1] : insn.opcode[0];
  return ByCondition<D>(code, []<unsigned kCode>() { return &Jcc<D, kCode>; });
}

template <class D, class U>
Val<D, bool> CountIsZero(Cpu<D>& cpu) {
  return cpu.d().Eq(cpu.template GetReg<U>(8 * kRcx), cpu.d().Const(U{0}));
}

template <class D, class U>
void Jrcxz(Cpu<D>& cpu, const Insn& insn) {
  if (cpu.Decide(CountIsZero<D, U>(cpu))) {
    cpu.Jump(static_cast<uint64_t>(insn.imm));
  }
}

template <class D>
Handler<D> SelectJrcxz(const Insn& insn) {
  if (insn.operand_size_bytes == 2) {
    return nullptr;
  }
  return insn.addr32 ? &Jrcxz<D, uint32_t> : &Jrcxz<D, uint64_t>;
}

// E0 LOOPNE, E1 LOOPE, E2 LOOP.
template <class D, class U>
void Loop(Cpu<D>& cpu, const Insn& insn) {
  D& d = cpu.d();
  const auto count = d.Sub(cpu.template GetReg<U>(8 * kRcx), d.Const(U{1}));
  cpu.template SetReg<U>(8 * kRcx, count);
  auto again = d.Not(d.Eq(count, d.Const(U{0})));
  if (insn.opcode[0] == 0xe0) {
    again = d.And(again, d.Not(cpu.flags().Zero()));
  } else if (insn.opcode[0] == 0xe1) {
    again = d.And(again, cpu.flags().Zero());
  }
  if (cpu.Decide(again)) {
    cpu.Jump(static_cast<uint64_t>(insn.imm));
  }
}

template <class D>
Handler<D> SelectLoop(const Insn& insn) {
  // With F2 or F3 some AMD CPUs take LOOPE for LOOPNE and the reverse.
  if (insn.operand_size_bytes == 2 || insn.rep || insn.repne) {
    return nullptr;
  }
  return insn.addr32 ? &Loop<D, uint32_t> : &Loop<D, uint64_t>;
}

template <class D>
void Syscall(Cpu<D>& cpu, const Insn& insn) {
  cpu.flags().ConcretiseAll();
  const uint64_t rflags = cpu.regs().rflags & ~uint64_t{0x10000};  // RF
  cpu.template SetReg<uint64_t>(8 * kRcx, cpu.d().Const(insn.next_ip()));
  cpu.template SetReg<uint64_t>(8 * kR11, cpu.d().Const(rflags));
  cpu.StopSyscall();
}

template <class D>
void Int3(Cpu<D>& cpu, const Insn& /*insn*/) {
  cpu.StopBreakpoint();
}

}  // namespace

template <class D>
void RegisterControl(HandlerTable<D>& table) {
  table["jmp"] = SelectJmp<D>;
  table["call"] = SelectCall<D>;
  table["ret"] = SelectRet<D>;
  for (const char* name :
       {"ja", "jae", "jb", "jbe", "je", "jg", "jge", "jl", "jle", "jne", "jno",
        "jnp", "jns", "jo", "jp", "js"}) {
    table[name] = SelectJcc<D>;
  }
  table["jrcxz"] = SelectJrcxz<D>;
  table["jecxz"] = SelectJrcxz<D>;
  table["loop"] = SelectLoop<D>;
  table["loope"] = SelectLoop<D>;
  table["loopne"] = SelectLoop<D>;
  table["syscall"] = Always<D, &Syscall<D>>;
  table["int3"] = Always<D, &Int3<D>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterControl);

}  // namespace clew::machine
