// FXSAVE, FXRSTOR, XSAVE, XRSTOR: the state of x87, SSE and AVX in memory.

#include "machine/insn/sse_common.h"
#include "machine/insn/x87_stack.h"
#include "machine/xsave.h"

namespace clew::machine {
namespace {

constexpr uint64_t kFxsaveAlignment = 16;
constexpr uint64_t kFxsavePointers = offsetof(FxsaveArea, pointers);
constexpr uint64_t kFxsaveMxcsr =
    kFxsavePointers + offsetof(FxsaveMxcsr, mxcsr);
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
bool Misaligned(Cpu<D>& cpu, uint64_t addr, uint64_t alignment, bool write) {
  if (addr % alignment != 0) {
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
void StoreX87(Cpu<D>& cpu, uint64_t addr) {
  const Registers& regs = cpu.regs();
  X87 x87 = regs.x87;  // storing it is no use of it
  const X87Stack stack(x87);
  const bool is_qemu = regs.is_of_qemu();
  const FxsaveHead head = {regs.x87.control, regs.x87.status,
                           stack.NonEmptyMask(), 0};
  StoreStruct(cpu, addr, head,
              is_qemu ? offsetof(FxsaveHead, opcode) : sizeof(head));
  StoreStruct(cpu, addr + kFxsavePointers, std::array<uint64_t, 2>{});
  for (unsigned i = 0; i < 8; ++i) {
    const FxsaveSlot slot(stack.st(i));
    StoreStruct(cpu, addr + kFxsaveX87 + sizeof(slot) * i, slot,
                is_qemu ? kFloat80Bytes : sizeof(slot));
  }
}

template <class D>
void StoreMxcsr(Cpu<D>& cpu, uint64_t addr) {
  const Registers& regs = cpu.regs();
  const std::array<uint32_t, 2> words = {
      regs.mxcsr, regs.is_of_qemu() ? kMxcsrBits : regs.mxcsr_mask};
  StoreStruct(cpu, addr + kFxsaveMxcsr, words);
}

// One lane of all vector registers.
template <class D>
VecLane ReadLaneOfAll(Cpu<D>& cpu, unsigned lane) {
  VecLane values;
  for (unsigned number = 0; number < kVecRegisters; ++number) {
    for (unsigned half = 0; half < 2; ++half) {
      values[number].q[half] =
          cpu.d().Concretise(cpu.GetQuad(number, 2 * lane + half));
    }
  }
  return values;
}

template <class D>
void WriteLaneOfAll(Cpu<D>& cpu, unsigned lane, const VecLane& values) {
  for (unsigned number = 0; number < kVecRegisters; ++number) {
    for (unsigned half = 0; half < 2; ++half) {
      cpu.SetQuad(number, 2 * lane + half,
                  cpu.d().Const(values[number].q[half]));
    }
  }
}

template <class D>
void Fxsave(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t addr = cpu.Address(insn);
  if (Misaligned(cpu, addr, kFxsaveAlignment, true) ||
      !cpu.CheckStore(addr, kFxsaveBytes)) {
    return;
  }
  StoreX87(cpu, addr);
  StoreMxcsr(cpu, addr);
  StoreStruct(cpu, addr + kFxsaveXmm, ReadLaneOfAll(cpu, 0));
}

template <class D>
bool HasReservedBits(Cpu<D>& cpu, uint32_t mxcsr, uint64_t addr) {
  if ((mxcsr & ~kMxcsrBits) != 0) {
    cpu.Raise(FaultKind::kGeneral, addr);
    return true;
  }
  return false;
}

template <class D>
void Fxrstor(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t addr = cpu.Address(insn);
  FxsaveArea area;
  if (Misaligned(cpu, addr, kFxsaveAlignment, false) ||
      !cpu.LoadBytes(addr, std::as_writable_bytes(std::span(&area, 1))) ||
      HasReservedBits(cpu, area.pointers.mxcsr, addr)) {
    return;
  }
  cpu.regs().mxcsr = area.pointers.mxcsr;
  RestoreX87(area, cpu.regs().x87);
  WriteLaneOfAll(cpu, 0, area.xmm);
}

// The components of the requested-feature bitmap (RFBM): those that EDX:EAX
// asks for of XCR0. A recorded program is shown x87, SSE and AVX there.
constexpr uint64_t kStateX87 = 1;
constexpr uint64_t kStateSse = 2;
constexpr uint64_t kStateAvx = 4;
constexpr uint64_t kShown = kStateX87 | kStateSse | kStateAvx;
static_assert(kStateAvx == 1u << kComponentAvx);
constexpr uint64_t kXsaveAlignment = 64;
constexpr uint64_t kHeader = sizeof(FxsaveArea);
constexpr uint64_t kAvxAt = kHeader + sizeof(XsaveHeader);

template <class D>
uint64_t AskedFor(Cpu<D>& cpu) {
  return cpu.d().Concretise(cpu.template GetReg<uint32_t>(8 * kRax)) & kShown;
}

// XINUSE. An Intel CPU knows of AVX whether it was used, and takes SSE for used
// after each switch of threads, such as a step of the recorder's; of others,
// what is not in its initial state.
template <class D>
uint64_t InUse(Cpu<D>& cpu) {
  const Registers& regs = cpu.regs();
  const uint64_t x87 = regs.x87.in_use ? kStateX87 : 0;
  if (regs.is_of_intel()) {
    return x87 | kStateSse | (regs.avx_in_use ? kStateAvx : 0);
  }
  const bool sse = ReadLaneOfAll(cpu, 0) != VecLane{};
  const bool avx = ReadLaneOfAll(cpu, 1) != VecLane{};
  return x87 | (sse ? kStateSse : 0) | (avx ? kStateAvx : 0);
}

// In the standard format, whose initial components XSAVE stores as well.
// Source: Intel SDM vol. 1, "Operation of XSAVE".
template <class D>
void Xsave(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t addr = cpu.Address(insn);
  const uint64_t wanted = AskedFor(cpu);
  const uint64_t size = (wanted & kStateAvx) != 0
                            ? kAvxAt + sizeof(VecLane)
                            : kHeader + sizeof(XsaveHeader);
  uint64_t components = 0;
  if (Misaligned(cpu, addr, kXsaveAlignment, true) ||
      !cpu.CheckStore(addr, size) ||
      !cpu.LoadBytes(addr + kHeader,
                     std::as_writable_bytes(std::span(&components, 1)))) {
    return;
  }
  if ((wanted & kStateX87) != 0) {
    StoreX87(cpu, addr);
  }
  if ((wanted & (kStateSse | kStateAvx)) != 0) {
    StoreMxcsr(cpu, addr);
  }
  if ((wanted & kStateSse) != 0) {
    StoreStruct(cpu, addr + kFxsaveXmm, ReadLaneOfAll(cpu, 0));
  }
  if ((wanted & kStateAvx) != 0) {
    StoreStruct(cpu, addr + kAvxAt, ReadLaneOfAll(cpu, 1));
  }
  components = (components & ~wanted) | (InUse(cpu) & wanted);
  StoreStruct(cpu, addr + kHeader, components);
}

// From the standard format; the compacted one, which the program is not shown,
// is a fault. Source: Intel SDM vol. 1, "Operation of XRSTOR".
template <class D>
void Xrstor(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t addr = cpu.Address(insn);
  const uint64_t wanted = AskedFor(cpu);
  struct {
    FxsaveArea legacy;
    XsaveHeader header;
  } area;
  VecLane avx = {};
  if (Misaligned(cpu, addr, kXsaveAlignment, false) ||
      !cpu.LoadBytes(addr, std::as_writable_bytes(std::span(&area, 1)))) {
    return;
  }
  const XsaveHeader& header = area.header;
  const uint64_t stored = header.xstate_bv & wanted;
  if ((header.xstate_bv & ~kShown) != 0 || header.xcomp_bv != 0 ||
      header.reserved[0] != 0) {
    cpu.Raise(FaultKind::kGeneral, addr);
    return;
  }
  const bool takes_mxcsr = (wanted & (kStateSse | kStateAvx)) != 0;
  if ((takes_mxcsr && HasReservedBits(cpu, area.legacy.pointers.mxcsr, addr)) ||
      ((stored & kStateAvx) != 0 &&
       !cpu.LoadBytes(addr + kAvxAt,
                      std::as_writable_bytes(std::span(&avx, 1))))) {
    return;
  }
  if (takes_mxcsr) {
    cpu.regs().mxcsr = area.legacy.pointers.mxcsr;
  }
  if ((wanted & kStateX87) != 0) {
    cpu.regs().x87 = {};
  }
  if ((stored & kStateX87) != 0) {
    RestoreX87(area.legacy, cpu.regs().x87);
  }
  if ((wanted & kStateSse) != 0) {
    WriteLaneOfAll(cpu, 0,
                   (stored & kStateSse) != 0 ? area.legacy.xmm : VecLane{});
  }
  if ((wanted & kStateAvx) != 0) {
    WriteLaneOfAll(cpu, 1, avx);
    cpu.regs().avx_in_use = (stored & kStateAvx) != 0;
  }
}

}  // namespace

template <class D>
void RegisterSaveState(HandlerTable<D>& table) {
  for (const char* mnemonic : {"fxsave", "fxsave64"}) {
    table[mnemonic] = SelectSse<D, &Fxsave<D>>;
  }
  for (const char* mnemonic : {"fxrstor", "fxrstor64"}) {
    table[mnemonic] = SelectSse<D, &Fxrstor<D>>;
  }
  for (const char* mnemonic : {"xsave", "xsave64"}) {
    table[mnemonic] = SelectSse<D, &Xsave<D>>;
  }
  for (const char* mnemonic : {"xrstor", "xrstor64"}) {
    table[mnemonic] = SelectSse<D, &Xrstor<D>>;
  }
}

CLEW_INSTANTIATE_FAMILY(RegisterSaveState);

}  // namespace clew::machine
