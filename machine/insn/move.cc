// MOV, MOVZX, MOVSX, LEA, CMOVcc, SETcc, conversions within rax, BSWAP,
// MOVBE, XLAT.

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

template <class D, class U>
void MovRegReg(Cpu<D>& cpu, const Insn& insn) {
  cpu.template SetReg<U>(insn.op[0].reg,
                         cpu.template GetReg<U>(insn.op[1].reg));
}

template <class D, class U>
void MovRegImm(Cpu<D>& cpu, const Insn& insn) {
  cpu.template SetReg<U>(insn.op[0].reg,
                         cpu.d().Const(static_cast<U>(insn.imm)));
}

template <class D, class U>
void MovRegMem(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template Load<U>(cpu.Address(insn));
  if (!cpu.faulted()) {
    cpu.template SetReg<U>(insn.op[0].reg, value);
  }
}

template <class D, class U>
void MovMemReg(Cpu<D>& cpu, const Insn& insn) {
  cpu.template Store<U>(cpu.Address(insn),
                        cpu.template GetReg<U>(insn.op[1].reg));
}

template <class D, class U>
void MovMemImm(Cpu<D>& cpu, const Insn& insn) {
  cpu.template Store<U>(cpu.Address(insn),
                        cpu.d().Const(static_cast<U>(insn.imm)));
}

template <class D>
Handler<D> SelectMov(const Insn& insn) {
  const Operand& to = insn.op[0];
  const Operand& from = insn.op[1];
  return BySize<D>(to.size_bytes, [&]<class U>() -> Handler<D> {
    if (to.is_mem()) {
      return from.is_imm()   ? &MovMemImm<D, U>
             : from.is_reg() ? &MovMemReg<D, U>
                             : nullptr;
    }
    if (!to.is_reg()) {
      return nullptr;
    }
    return from.is_imm()   ? &MovRegImm<D, U>
           : from.is_mem() ? &MovRegMem<D, U>
           : from.is_reg() ? &MovRegReg<D, U>
                           : nullptr;
  });
}

// From is narrower than To; kSigned: MOVSX, MOVSXD.
template <class D, class To, class From, bool kSigned>
void Extend(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template Read<From>(insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  if constexpr (kSigned) {
    cpu.template SetReg<To>(insn.op[0].reg, cpu.d().template SExt<To>(value));
  } else {
    cpu.template SetReg<To>(insn.op[0].reg, cpu.d().template ZExt<To>(value));
  }
}

template <class D, bool kSigned>
Handler<D> SelectExtend(const Insn& insn) {
  return BySize<D>(insn.op[0].size_bytes, [&]<class To>() {
    return BySize<D>(insn.op[1].size_bytes, []<class From>() -> Handler<D> {
      if constexpr (sizeof(From) <= sizeof(To)) {
        return &Extend<D, To, From, kSigned>;
      } else {
        return nullptr;
      }
    });
  });
}

template <class D, class U>
void Lea(Cpu<D>& cpu, const Insn& insn) {
  cpu.template SetReg<U>(insn.op[0].reg,
                         cpu.d().template Trunc<U>(cpu.Offset(insn)));
}

template <class D>
Handler<D> SelectLea(const Insn& insn) {
  return BySize<D>(insn.op[0].size_bytes, []<class U>() { return &Lea<D, U>; });
}

// Reads memory and clears the upper half in any case.
template <class D, class U, unsigned kCode>
void Cmov(Cpu<D>& cpu, const Insn& insn) {
  const auto b = cpu.template Read<U>(insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  const auto a = cpu.template GetReg<U>(insn.op[0].reg);
  const auto condition = cpu.flags().template Condition<kCode>();
  cpu.template SetReg<U>(insn.op[0].reg, cpu.d().Ite(condition, b, a));
}

template <class D>
Handler<D> SelectCmov(const Insn& insn) {
  return ByCondition<D>(insn.opcode[1], [&]<unsigned kCode>() {
    return BySize<D>(insn.op[0].size_bytes,
                     []<class U>() { return &Cmov<D, U, kCode>; });
  });
}

template <class D, unsigned kCode>
void Set(Cpu<D>& cpu, const Insn& insn) {
  const auto condition = cpu.flags().template Condition<kCode>();
  cpu.template Write<uint8_t>(insn, insn.op[0],
                              cpu.d().template ZExt<uint8_t>(condition));
}

template <class D>
Handler<D> SelectSet(const Insn& insn) {
  return ByCondition<D>(insn.opcode[1],
                        []<unsigned kCode>() { return &Set<D, kCode>; });
}

// CBW, CWDE, CDQE: the lower half of rax to all of it.
template <class D, class To, class From>
void WidenRax(Cpu<D>& cpu, const Insn&) {
  const auto value = cpu.template GetReg<From>(8 * kRax);
  cpu.template SetReg<To>(8 * kRax, cpu.d().template SExt<To>(value));
}

// CWD, CDQ, CQO: the sign of rax to all bits of rdx.
template <class D, class U>
void SignToRdx(Cpu<D>& cpu, const Insn&) {
  const auto value = cpu.template GetReg<U>(8 * kRax);
  const auto count = cpu.d().Const(static_cast<U>(8 * sizeof(U) - 1));
  cpu.template SetReg<U>(8 * kRdx, cpu.d().Sar(value, count));
}

// A 16-bit BSWAP is undefined: refused.
template <class D, class U>
Val<D, U> ByteSwapped(D& d, Val<D, U> value) {
  auto result = d.Const(U{0});
  for (unsigned i = 0; i < sizeof(U); ++i) {
    const auto byte = d.And(d.Shr(value, d.Const(static_cast<U>(U{8} * i))),
                            d.Const(U{0xff}));
    const unsigned place = 8 * static_cast<unsigned>(sizeof(U) - 1 - i);
    result = d.Or(result, d.Shl(byte, d.Const(static_cast<U>(place))));
  }
  return result;
}

template <class D, class U>
void Bswap(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template GetReg<U>(insn.op[0].reg);
  cpu.template SetReg<U>(insn.op[0].reg, ByteSwapped<D, U>(cpu.d(), value));
}

// A load or a store.
template <class D, class U>
void Movbe(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template Read<U>(insn, insn.op[1]);
  if (!cpu.faulted()) {
    cpu.template Write<U>(insn, insn.op[0], ByteSwapped<D, U>(cpu.d(), value));
  }
}

template <class D>
Handler<D> SelectMovbe(const Insn& insn) {
  if (insn.rep || insn.repne) {
    return nullptr;
  }
  return BySize<D>(insn.operand_size_bytes,
                   []<class U>() { return &Movbe<D, U>; });
}

template <class D>
Handler<D> SelectBswap(const Insn& insn) {
  return insn.op[0].size_bytes == 8   ? &Bswap<D, uint64_t>
         : insn.op[0].size_bytes == 4 ? &Bswap<D, uint32_t>
                                      : nullptr;
}

template <class D>
void Xlat(Cpu<D>& cpu, const Insn& insn) {
  D& d = cpu.d();
  const auto index =
      d.template ZExt<uint64_t>(cpu.template GetReg<uint8_t>(8 * kRax));
  auto offset = d.Add(cpu.template GetReg<uint64_t>(8 * kRbx), index);
  if (insn.addr32) {
    offset = d.And(offset, d.Const(uint64_t{0xffffffff}));
  }
  const auto value =
      cpu.template Load<uint8_t>(cpu.LinearAddress(insn, offset));
  if (!cpu.faulted()) {
    cpu.template SetReg<uint8_t>(8 * kRax, value);
  }
}

}  // namespace

template <class D>
void RegisterMove(HandlerTable<D>& table) {
  table["mov"] = SelectMov<D>;
  table["movabs"] = SelectMov<D>;
  table["movzx"] = SelectExtend<D, false>;
  table["movsx"] = SelectExtend<D, true>;
  table["movsxd"] = SelectExtend<D, true>;
  table["lea"] = SelectLea<D>;
  for (const char* name :
       {"cmova", "cmovae", "cmovb", "cmovbe", "cmove", "cmovg", "cmovge",
        "cmovl", "cmovle", "cmovne", "cmovno", "cmovnp", "cmovns", "cmovo",
        "cmovp", "cmovs"}) {
    table[name] = SelectCmov<D>;
  }
  for (const char* name :
       {"seta", "setae", "setb", "setbe", "sete", "setg", "setge", "setl",
        "setle", "setne", "setno", "setnp", "setns", "seto", "setp", "sets"}) {
    table[name] = SelectSet<D>;
  }
  table["cbw"] = Always<D, &WidenRax<D, uint16_t, uint8_t>>;
  table["cwde"] = Always<D, &WidenRax<D, uint32_t, uint16_t>>;
  table["cdqe"] = Always<D, &WidenRax<D, uint64_t, uint32_t>>;
  table["cwd"] = Always<D, &SignToRdx<D, uint16_t>>;
  table["cdq"] = Always<D, &SignToRdx<D, uint32_t>>;
  table["cqo"] = Always<D, &SignToRdx<D, uint64_t>>;
  table["bswap"] = SelectBswap<D>;
  table["movbe"] = SelectMovbe<D>;
  table["xlatb"] = Always<D, &Xlat<D>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterMove);

}  // namespace clew::machine
