// LDMXCSR, STMXCSR, FXSAVE, FXRSTOR, EMMS, VZEROUPPER, VZEROALL.

#include "machine/insn/sse_common.h"
#include "machine/insn/x87_stack.h"
#include "machine/xsave.h"

namespace clew::machine {
namespace {

constexpr uint32_t kMxcsrBits = 0xffff;  // the others are reserved

template <class D>
void Ldmxcsr(Cpu<D>& cpu, const Insn& insn) {
  const uint32_t value =
      cpu.d().Concretise(cpu.template Read<uint32_t>(insn, insn.op[0]));
  if (cpu.faulted()) {
    return;
  }
  if ((value & ~kMxcsrBits) != 0) {
    cpu.Raise(FaultKind::kGeneral);
    return;
  }
  cpu.regs().mxcsr = value;
}

template <class D>
void Stmxcsr(Cpu<D>& cpu, const Insn& insn) {
  cpu.template Write<uint32_t>(insn, insn.op[0],
                               cpu.d().Const(cpu.regs().mxcsr));
}

constexpr uint64_t kFxsaveX87 = offsetof(FxsaveArea, x87);
constexpr uint64_t kFxsaveXmm = offsetof(FxsaveArea, xmm);
constexpr uint64_t kFxsaveBytes = sizeof(FxsaveArea);
constexpr uint64_t kFloat80Bytes = 10;

// st(i) and reserved bytes.
struct FxsaveSlot {
  uint64_t significand = 0;
  uint64_t sign_exponent = 0;
  explicit FxsaveSlot(const Float80& value)
      : significand(value.significand), sign_exponent(value.sign_exponent) {}
};

template <class D>
bool Misaligned(Cpu<D>& cpu, uint64_t addr, bool write) {
  if (addr % 16 != 0) {
    cpu.Raise(FaultKind::kGeneral, addr, write);
    return true;
  }
  return false;
}

template <class D, class T>
void StoreStruct(Cpu<D>& cpu, uint64_t addr, const T& value,
                 size_t size_bytes = sizeof(T)) {
  cpu.StoreBytes(addr, std::as_bytes(std::span(&value, 1)).first(size_bytes));
}

// Stores what the CPU of the recording stores. A CPU sets reserved bytes to
// zero, and the pointers to the last x87 instruction, which are not kept here,
// where it raised no exception (as AMD's do). Those of QEMU 7.2, and the x87
// opcode, keep what was there.
template <class D>
void Fxsave(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t addr = cpu.Address(insn);
  if (Misaligned(cpu, addr, true) || !cpu.CheckStore(addr, kFxsaveBytes)) {
    return;
  }
  Registers& regs = cpu.regs();
  X87Stack stack(regs.x87);
  const bool is_qemu = regs.is_of_qemu();
  const FxsaveHead head = {regs.x87.control, regs.x87.status,
                           stack.NonEmptyMask(), 0};
  StoreStruct(cpu, addr, head,
              is_qemu ? offsetof(FxsaveHead, opcode) : sizeof(head));
  StoreStruct(
      cpu, addr + 8,
      FxsaveMxcsr{0, 0, regs.mxcsr, is_qemu ? kMxcsrBits : regs.mxcsr_mask});
  for (unsigned i = 0; i < 8; ++i) {
    const FxsaveSlot slot(stack.st(i));
    StoreStruct(cpu, addr + kFxsaveX87 + sizeof(slot) * i, slot,
                is_qemu ? kFloat80Bytes : sizeof(slot));
  }
  for (uint8_t i = 0; i < 16; ++i) {
    const Vec128 value = cpu.ReadVec(insn, {OperandKind::kVec, 16, i});
    StoreStruct(cpu, addr + kFxsaveXmm + 16u * i, value);
  }
}

template <class D>
void Fxrstor(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t addr = cpu.Address(insn);
  FxsaveArea area;
  if (Misaligned(cpu, addr, false) ||
      !cpu.LoadBytes(addr, std::as_writable_bytes(std::span(&area, 1)))) {
    return;
  }
  if ((area.pointers.mxcsr & ~kMxcsrBits) != 0) {
    cpu.Raise(FaultKind::kGeneral, addr);
    return;
  }
  cpu.regs().mxcsr = area.pointers.mxcsr;
  RestoreX87(area, cpu.regs().x87);
  for (uint8_t i = 0; i < 16; ++i) {
    cpu.WriteVec(insn, {OperandKind::kVec, 16, i}, area.xmm[i]);
  }
}

template <class D>
void Emms(Cpu<D>& cpu, const Insn&) {
  X87Stack(cpu.regs().x87).LeaveMmx();
}

// Of every vector register, the lanes from kLane on.
template <class D, unsigned kLane>
void ClearRegisters(Cpu<D>& cpu, const Insn&) {
  for (unsigned number = 0; number < kVecRegisters; ++number) {
    cpu.ClearLanes(number, kLane);
  }
}

}  // namespace

template <class D>
void RegisterSseState(HandlerTable<D>& table) {
  AddVec<D>(table, "vldmxcsr", SelectFormless<D, 1, &Ldmxcsr<D>>);
  AddVec<D>(table, "vstmxcsr", SelectFormless<D, 1, &Stmxcsr<D>>);
  table["emms"] = SelectSse<D, &Emms<D>>;
  table["vzeroupper"] = Always<D, &ClearRegisters<D, 1>>;
  table["vzeroall"] = Always<D, &ClearRegisters<D, 0>>;
  table["fxsave"] = SelectSse<D, &Fxsave<D>>;
  table["fxsave64"] = SelectSse<D, &Fxsave<D>>;
  table["fxrstor"] = SelectSse<D, &Fxrstor<D>>;
  table["fxrstor64"] = SelectSse<D, &Fxrstor<D>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterSseState);

}  // namespace clew::machine
