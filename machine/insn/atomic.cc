// XCHG, XADD, CMPXCHG, CMPXCHG8B, CMPXCHG16B. The other atomics are a LOCK
// prefix on arithmetic, logic and bit instructions.

#include <array>

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

// With memory it is locked, prefix or not.
template <class D, class U>
void Xchg(Cpu<D>& cpu, const Insn& insn) {
  const bool first_is_mem = insn.op[0].is_mem();
  const Operand& reg = insn.op[first_is_mem ? 1 : 0];
  const Operand& other = insn.op[first_is_mem ? 0 : 1];
  const auto b = cpu.template GetReg<U>(reg.reg);
  if (!other.is_mem()) {
    const auto a = cpu.template GetReg<U>(other.reg);
    cpu.template SetReg<U>(other.reg, b);
    cpu.template SetReg<U>(reg.reg, a);
    return;
  }
  const uint64_t addr = cpu.Address(insn);
  const auto a = cpu.template LoadForUpdate<U>(addr);
  if (!cpu.faulted()) {
    cpu.template StoreUpdate<U>(addr, b);
    cpu.template SetReg<U>(reg.reg, a);
  }
}

// Reads op0; false if it cannot be read or will not be writable.
template <class D, class U>
bool ReadToChange(Cpu<D>& cpu, const Insn& insn, Val<D, U>& value) {
  const Operand& operand = insn.op[0];
  if (!operand.is_mem()) {
    value = cpu.template GetReg<U>(operand.reg);
    return true;
  }
  const uint64_t addr = cpu.Address(insn);
  value = insn.lock ? cpu.template LoadForUpdate<U>(addr)
                    : cpu.template Load<U>(addr);
  return !cpu.faulted() && cpu.CheckStore(addr, sizeof(U));
}

// REQUIRES: ReadToChange succeeded. `addr` is from before registers changed.
template <class D, class U>
void WriteChanged(Cpu<D>& cpu, const Insn& insn, uint64_t addr,
                  Val<D, U> value) {
  if (!insn.op[0].is_mem()) {
    cpu.template SetReg<U>(insn.op[0].reg, value);
  } else if (insn.lock) {
    cpu.template StoreUpdate<U>(addr, value);
  } else {
    cpu.template Store<U>(addr, value);
  }
}

template <class D, class U>
void Xadd(Cpu<D>& cpu, const Insn& insn) {
  auto a = cpu.d().Const(U{0});
  if (!ReadToChange<D, U>(cpu, insn, a)) {
    return;
  }
  const uint64_t addr = insn.op[0].is_mem() ? cpu.Address(insn) : 0;
  const auto b = cpu.template GetReg<U>(insn.op[1].reg);
  const auto r = cpu.d().Add(a, b);
  cpu.flags().template Set<U>(FlagSource::kAdd, a, b, r);
  cpu.template SetReg<U>(insn.op[1].reg, a);
  WriteChanged<D, U>(cpu, insn, addr, r);
}

// Into a register: if the comparison fails, all 64 bits stay, also for a 32-bit
// operand.
template <class D, class U>
void ChooseReg(Cpu<D>& cpu, unsigned reg, Val<D, bool> condition,
               Val<D, U> value) {
  D& d = cpu.d();
  if constexpr (sizeof(U) == 4) {
    const auto whole = cpu.template GetReg<uint64_t>(reg);
    cpu.template SetReg<uint64_t>(
        reg, d.Ite(condition, d.template ZExt<uint64_t>(value), whole));
  } else {
    cpu.template SetReg<U>(
        reg, d.Ite(condition, value, cpu.template GetReg<U>(reg)));
  }
}

// Memory is always written, with what it was if the comparison fails.
template <class D, class U>
void Cmpxchg(Cpu<D>& cpu, const Insn& insn) {
  D& d = cpu.d();
  auto a = d.Const(U{0});
  if (!ReadToChange<D, U>(cpu, insn, a)) {
    return;
  }
  const auto rax = cpu.template GetReg<U>(8 * kRax);
  const auto equal = d.Eq(rax, a);
  const auto b = cpu.template GetReg<U>(insn.op[1].reg);
  if (insn.op[0].is_mem()) {
    WriteChanged<D, U>(cpu, insn, cpu.Address(insn), d.Ite(equal, b, a));
  } else {
    ChooseReg<D, U>(cpu, insn.op[0].reg, equal, b);
  }
  ChooseReg<D, U>(cpu, 8 * kRax, d.Not(equal), a);
  cpu.flags().template Set<U>(FlagSource::kSub, rax, a, d.Sub(rax, a));
}

template <class D>
Handler<D> SelectXchg(const Insn& insn) {
  return BySize<D>(insn.op[0].size_bytes,
                   []<class U>() { return &Xchg<D, U>; });
}

template <class D>
Handler<D> SelectXadd(const Insn& insn) {
  return BySize<D>(insn.op[0].size_bytes,
                   []<class U>() { return &Xadd<D, U>; });
}

template <class D>
Handler<D> SelectCmpxchg(const Insn& insn) {
  return BySize<D>(insn.op[0].size_bytes,
                   []<class U>() { return &Cmpxchg<D, U>; });
}

// CMPXCHG8B (U is uint32_t) and CMPXCHG16B (uint64_t): rdx:rax against memory,
// rcx:rbx into it. One access, taken as locked with or without the prefix,
// unless stores wait: then what it stores without the prefix waits as well.
template <class D, class U>
void CmpxchgPair(Cpu<D>& cpu, const Insn& insn) {
  D& d = cpu.d();
  const uint64_t addr = cpu.Address(insn);
  if (sizeof(U) == 8 && addr % 16 != 0) {
    cpu.Raise(FaultKind::kGeneral, addr);
    return;
  }
  std::array<U, 2> memory;
  const bool atomic = insn.lock || !cpu.stores_wait();
  const auto bytes = std::as_writable_bytes(std::span(memory));
  if (atomic ? !cpu.LoadBytesForUpdate(addr, bytes)
             : !cpu.LoadBytes(addr, bytes) ||
                   !cpu.CheckStore(addr, sizeof(memory))) {
    return;
  }
  const auto get = [&](unsigned number) {
    return d.Concretise(cpu.template GetReg<U>(8 * number));
  };
  const bool equal = memory == std::array<U, 2>{get(kRax), get(kRdx)};
  const std::array<U, 2> stored =
      equal ? std::array<U, 2>{get(kRbx), get(kRcx)} : memory;
  if (atomic) {
    cpu.StoreBytesUpdate(addr, std::as_bytes(std::span(stored)));
  } else {
    cpu.StoreBytes(addr, std::as_bytes(std::span(stored)));
  }
  if (!equal) {
    cpu.template SetReg<U>(8 * kRax, d.Const(memory[0]));
    cpu.template SetReg<U>(8 * kRdx, d.Const(memory[1]));
  }
  cpu.flags().SetOne(kFlagZero, d.Const(equal));
}

}  // namespace

template <class D>
void RegisterAtomic(HandlerTable<D>& table) {
  table["xchg"] = SelectXchg<D>;
  table["xadd"] = SelectXadd<D>;
  table["cmpxchg"] = SelectCmpxchg<D>;
  table["cmpxchg8b"] = Always<D, &CmpxchgPair<D, uint32_t>>;
  table["cmpxchg16b"] = Always<D, &CmpxchgPair<D, uint64_t>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterAtomic);

}  // namespace clew::machine
