// FXSAVE, FXRSTOR, XSAVE, XSAVEC, XRSTOR: the state of x87, SSE, AVX and
// AVX-512 in memory.

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

// Calls f(offset, bytes) for the parts of a component that are accessed at
// once: none is longer than what FXSAVE accesses.
template <class T, class F>
void EachAccess(std::span<T> bytes, F f) {
  for (size_t at = 0; at < bytes.size(); at += kFxsaveBytes) {
    f(at, bytes.subspan(at, std::min(kFxsaveBytes, bytes.size() - at)));
  }
}

// Stores SSE's part of the legacy region, or an extended component.
template <class D>
void StoreComponentAt(Cpu<D>& cpu, uint64_t addr, unsigned component) {
  EachQuadOf(component, [&](unsigned number, unsigned i) {
    (void)cpu.d().Concretise(cpu.GetQuad(number, i));
  });
  std::array<std::byte, kComponentBytesMax> room;
  const auto bytes = std::span(room).first(ComponentBytes(component));
  StoreComponent(cpu.regs(), component, bytes);
  EachAccess(bytes, [&](size_t at, std::span<const std::byte> part) {
    cpu.StoreBytes(addr + at, part);
  });
}

// RestoreComponent, without what shadow there was.
template <class D>
void SetComponent(Cpu<D>& cpu, unsigned component,
                  std::span<const std::byte> bytes) {
  RestoreComponent(component, bytes, cpu.regs());
  EachQuadOf(component, [&](unsigned number, unsigned i) {
    cpu.SetQuad(number, i, cpu.d().Const(cpu.regs().quad(number, i)));
  });
}

// Sets an extended component to what lies there. REQUIRES: it can be loaded.
template <class D>
void LoadComponentAt(Cpu<D>& cpu, uint64_t addr, unsigned component) {
  std::array<std::byte, kComponentBytesMax> room;
  const auto bytes = std::span(room).first(ComponentBytes(component));
  EachAccess(bytes, [&](size_t at, std::span<std::byte> part) {
    cpu.LoadBytes(addr + at, part);
  });
  SetComponent(cpu, component, bytes);
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
  StoreComponentAt(cpu, addr + kFxsaveXmm, kComponentSse);
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
  SetComponent(cpu, kComponentSse, std::as_bytes(std::span(area.xmm)));
}

constexpr uint64_t kStateX87 = ComponentBit(kComponentX87);
constexpr uint64_t kStateSse = ComponentBit(kComponentSse);
constexpr uint64_t kStateAvx = ComponentBit(kComponentAvx);
constexpr uint64_t kStateAvx512 = ComponentBit(kComponentOpmask) |
                                  ComponentBit(kComponentZmm) |
                                  ComponentBit(kComponentHighZmm);
constexpr uint64_t kCompacted = ComponentBit(63);  // of XCOMP_BV
constexpr uint64_t kXsaveAlignment = 64;
constexpr uint64_t kHeader = sizeof(FxsaveArea);

// XCR0, as far as the machine has it: what a recorded program is shown of it.
template <class D>
uint64_t Shown(Cpu<D>& cpu) {
  const uint64_t avx512 =
      cpu.features().Has(x86::Feature::kAvx512f) ? kStateAvx512 : 0;
  return kStateX87 | kStateSse | kStateAvx | avx512;
}

// The requested-feature bitmap (RFBM): what EDX:EAX asks for of XCR0.
template <class D>
uint64_t AskedFor(Cpu<D>& cpu) {
  return cpu.d().Concretise(cpu.template GetReg<uint32_t>(8 * kRax)) &
         Shown(cpu);
}

// An area of which XCOMP_BV says the format.
struct SaveArea {
  uint64_t addr = 0;
  uint64_t xcomp_bv = 0;
};

// Calls f(component, address) for those of the extended components that are
// among `components` until it returns false; returns whether it never did. The
// address is of no use where the area has no room for the component.
template <class D, class F>
bool EachExtended(Cpu<D>& cpu, SaveArea area, uint64_t components, F f) {
  const XsaveLayout& layout = UsualLayout(cpu.regs());
  return std::ranges::all_of(kExtendedComponents, [&](unsigned component) {
    return (components & ComponentBit(component)) == 0 ||
           f(component,
             area.addr + layout.OffsetOf(component, area.xcomp_bv).value_or(0));
  });
}

template <class D>
bool CheckArea(Cpu<D>& cpu, SaveArea area, uint64_t components) {
  return cpu.CheckStore(area.addr, kHeader + sizeof(XsaveHeader)) &&
         EachExtended(cpu, area, components,
                      [&](unsigned component, uint64_t at) {
                        return cpu.CheckStore(at, ComponentBytes(component));
                      });
}

template <class D>
void StoreExtended(Cpu<D>& cpu, SaveArea area, uint64_t components) {
  EachExtended(cpu, area, components, [&](unsigned component, uint64_t at) {
    StoreComponentAt(cpu, at, component);
    return true;
  });
}

// In the standard format, whose initial components XSAVE stores as well.
// Source: Intel SDM vol. 1, "Operation of XSAVE".
template <class D>
void Xsave(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t addr = cpu.Address(insn);
  const uint64_t wanted = AskedFor(cpu);
  uint64_t components = 0;
  if (Misaligned(cpu, addr, kXsaveAlignment, true) ||
      !CheckArea(cpu, {addr}, wanted) ||
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
    StoreComponentAt(cpu, addr + kFxsaveXmm, kComponentSse);
  }
  StoreExtended(cpu, {addr}, wanted);
  components = (components & ~wanted) | (ComponentsInUse(cpu.regs()) & wanted);
  StoreStruct(cpu, addr + kHeader, components);
}

// In the compacted format, with room for all that is asked for, of which it
// stores what is in use. MXCSR belongs to SSE. Source: Intel SDM vol. 1,
// "Operation of XSAVEC".
template <class D>
void Xsavec(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t addr = cpu.Address(insn);
  const uint64_t wanted = AskedFor(cpu);
  const bool has_mxcsr = cpu.regs().mxcsr != Registers().mxcsr;
  const uint64_t stored =
      wanted & (ComponentsInUse(cpu.regs()) | (has_mxcsr ? kStateSse : 0));
  const SaveArea area = {addr, kCompacted | wanted};
  if (Misaligned(cpu, addr, kXsaveAlignment, true) ||
      !CheckArea(cpu, area, stored)) {
    return;
  }
  if ((stored & kStateX87) != 0) {
    StoreX87(cpu, addr);
  }
  if ((stored & kStateSse) != 0) {
    StoreMxcsr(cpu, addr);
    StoreComponentAt(cpu, addr + kFxsaveXmm, kComponentSse);
  }
  StoreExtended(cpu, area, stored);
  StoreStruct(cpu, addr + kHeader, std::array{stored, area.xcomp_bv});
}

// Sets x87 and SSE, as far as they are wanted: to what was stored of them, or
// to their initial state.
template <class D>
void RestoreLegacyWanted(Cpu<D>& cpu, const FxsaveArea& legacy, uint64_t wanted,
                         uint64_t stored) {
  if ((wanted & kStateX87) != 0) {
    cpu.regs().x87 = {};
  }
  if ((stored & kStateX87) != 0) {
    RestoreX87(legacy, cpu.regs().x87);
  }
  if ((stored & kStateSse) != 0) {
    SetComponent(cpu, kComponentSse, std::as_bytes(std::span(legacy.xmm)));
  } else if ((wanted & kStateSse) != 0) {
    SetComponent(cpu, kComponentSse, {});
  }
}

// Whether XRSTOR raises no fault for the header. Source: Intel SDM vol. 1,
// "Standard Form of XRSTOR", "Compacted Form of XRSTOR".
template <class D>
bool IsRestorable(Cpu<D>& cpu, const XsaveHeader& header) {
  const uint64_t unknown = ~Shown(cpu);
  if ((header.xcomp_bv & kCompacted) == 0) {
    return (header.xstate_bv & unknown) == 0 && header.xcomp_bv == 0 &&
           header.reserved[0] == 0;
  }
  const uint64_t has_room = header.xcomp_bv & ~kCompacted;
  return (has_room & unknown) == 0 && (header.xstate_bv & ~has_room) == 0 &&
         std::ranges::all_of(header.reserved,
                             [](uint64_t word) { return word == 0; });
}

// In the standard format MXCSR is loaded whenever SSE or AVX is asked for; in
// the compacted one it belongs to SSE. Source: Intel SDM vol. 1, "Operation of
// XRSTOR".
template <class D>
void Xrstor(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t addr = cpu.Address(insn);
  const uint64_t wanted = AskedFor(cpu);
  struct {
    FxsaveArea legacy;
    XsaveHeader header;
  } area;
  if (Misaligned(cpu, addr, kXsaveAlignment, false) ||
      !cpu.LoadBytes(addr, std::as_writable_bytes(std::span(&area, 1)))) {
    return;
  }
  const XsaveHeader& header = area.header;
  const uint64_t stored = header.xstate_bv & wanted;
  if (!IsRestorable(cpu, header)) {
    cpu.Raise(FaultKind::kGeneral, addr);
    return;
  }
  const SaveArea place = {addr, header.xcomp_bv};
  const bool is_compacted = header.xcomp_bv != 0;
  const bool sets_mxcsr =
      (wanted & (kStateSse | (is_compacted ? 0 : kStateAvx))) != 0;
  const uint32_t mxcsr = !is_compacted || (stored & kStateSse) != 0
                             ? area.legacy.pointers.mxcsr
                             : Registers().mxcsr;
  if ((sets_mxcsr && HasReservedBits(cpu, mxcsr, addr)) ||
      !EachExtended(cpu, place, stored, [&](unsigned component, uint64_t at) {
        return cpu.CheckLoad(at, ComponentBytes(component));
      })) {
    return;
  }
  if (sets_mxcsr) {
    cpu.regs().mxcsr = mxcsr;
  }
  RestoreLegacyWanted(cpu, area.legacy, wanted, stored);
  EachExtended(cpu, place, wanted, [&](unsigned component, uint64_t at) {
    if ((stored & ComponentBit(component)) != 0) {
      LoadComponentAt(cpu, at, component);
    } else {
      SetComponent(cpu, component, {});
    }
    return true;
  });
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
  for (const char* mnemonic : {"xsavec", "xsavec64"}) {
    table[mnemonic] = SelectSse<D, &Xsavec<D>>;
  }
  for (const char* mnemonic : {"xrstor", "xrstor64"}) {
    table[mnemonic] = SelectSse<D, &Xrstor<D>>;
  }
}

CLEW_INSTANTIATE_FAMILY(RegisterSaveState);

}  // namespace clew::machine
