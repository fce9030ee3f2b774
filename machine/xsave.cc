#include "machine/xsave.h"

#include <cstring>

#include "machine/insn/x87_stack.h"

namespace clew::machine {
namespace {

bool HasComponent(uint64_t bits, unsigned component) {
  return (bits >> component & 1) != 0;
}

// Where the machine keeps XINUSE of an extended component.
constexpr bool Registers::* InUseFlag(unsigned component) {
  switch (component) {
    case kComponentAvx:
      return &Registers::avx_in_use;
    case kComponentOpmask:
      return &Registers::opmask_in_use;
    case kComponentZmm:
      return &Registers::zmm_in_use;
    case kComponentHighZmm:
      return &Registers::high_zmm_in_use;
    default:
      return nullptr;
  }
}

bool IsInitial(const Registers& registers, unsigned component) {
  if (component == kComponentOpmask) {
    return registers.opmask == std::array<uint64_t, kOpmasks>();
  }
  uint64_t bits = 0;
  EachQuadOf(component, [&](unsigned number, unsigned i) {
    bits |= registers.quad(number, i);
  });
  return bits == 0;
}

uint64_t PlaceFor(const XsaveComponent& component, uint64_t end) {
  return component.aligned ? (end + 63) / 64 * 64 : end;
}

}  // namespace

void StoreComponent(const Registers& registers, unsigned component,
                    std::span<std::byte> bytes) {
  if (component == kComponentOpmask) {
    std::memcpy(bytes.data(), &registers.opmask, sizeof(registers.opmask));
    return;
  }
  std::byte* to = bytes.data();
  EachQuadOf(component, [&](unsigned number, unsigned i) {
    std::memcpy(to, &registers.quad(number, i), sizeof(uint64_t));
    to += sizeof(uint64_t);
  });
}

void RestoreComponent(unsigned component, std::span<const std::byte> bytes,
                      Registers& registers) {
  static constexpr std::array<std::byte, kComponentBytesMax> kInitial = {};
  const std::byte* from = bytes.empty() ? kInitial.data() : bytes.data();
  if (component == kComponentOpmask) {
    std::memcpy(&registers.opmask, from, sizeof(registers.opmask));
  }
  EachQuadOf(component, [&](unsigned number, unsigned i) {
    std::memcpy(&registers.quad(number, i), from, sizeof(uint64_t));
    from += sizeof(uint64_t);
  });
  if (const auto flag = InUseFlag(component); flag != nullptr) {
    registers.*flag = !bytes.empty();
  }
}

uint64_t ComponentsInUse(const Registers& registers) {
  const bool is_of_intel = registers.is_of_intel();
  uint64_t in_use = 0;
  if (registers.x87.in_use) {
    in_use |= ComponentBit(kComponentX87);
  }
  if (is_of_intel || !IsInitial(registers, kComponentSse)) {
    in_use |= ComponentBit(kComponentSse);
  }
  for (const unsigned component : kExtendedComponents) {
    if (is_of_intel ? registers.*InUseFlag(component)
                    : !IsInitial(registers, component)) {
      in_use |= ComponentBit(component);
    }
  }
  return in_use;
}

void RestoreX87(const FxsaveArea& area, X87& x87) {
  X87Stack stack(x87);
  stack.SetControl(area.head.control);
  stack.SetStatus(area.head.status);
  for (unsigned i = 0; i < 8; ++i) {
    stack.Set(i, area.x87[i]);
  }
  stack.SetNonEmptyMask(static_cast<uint8_t>(area.head.tags));
}

void RestoreLegacy(const FxsaveArea& area, uint64_t present,
                   Registers& registers) {
  registers.x87 = {};
  if (HasComponent(present, kComponentX87)) {
    RestoreX87(area, registers.x87);
  }
  std::span<const std::byte> xmm;
  if (HasComponent(present, kComponentSse)) {
    xmm = std::as_bytes(std::span(area.xmm));
  }
  RestoreComponent(kComponentSse, xmm, registers);
}

void InitialiseExtendedState(Registers& registers) {
  registers.mxcsr = Registers().mxcsr;
  RestoreLegacy({}, 0, registers);
  for (const unsigned component : kExtendedComponents) {
    RestoreComponent(component, {}, registers);
  }
}

std::optional<uint64_t> XsaveLayout::OffsetOf(unsigned component,
                                              uint64_t xcomp_bv) const {
  constexpr unsigned kCompacted = 63;
  const XsaveComponent& wanted = components[component];
  if (wanted.size_bytes == 0) {
    return std::nullopt;
  }
  if (!HasComponent(xcomp_bv, kCompacted)) {
    return wanted.offset;
  }
  uint64_t end = sizeof(FxsaveArea) + sizeof(XsaveHeader);
  for (unsigned i = kComponentAvx; i < component; ++i) {
    if (HasComponent(xcomp_bv, i)) {
      if (components[i].size_bytes == 0) {
        return std::nullopt;
      }
      end = PlaceFor(components[i], end) + components[i].size_bytes;
    }
  }
  return HasComponent(xcomp_bv, component)
             ? std::optional(PlaceFor(wanted, end))
             : std::nullopt;
}

// Source: CPUID of Sapphire Rapids; that of Zen 4 as pull request 33 of
// github.com/tycho/cpuid has it.
const XsaveLayout& UsualLayout(const Registers& registers) {
  static constexpr XsaveLayout kIntel = {};
  static constexpr XsaveLayout kAmd = {ComponentsWithOpmaskAt(832)};
  return registers.is_of_qemu() || registers.is_of_intel() ? kIntel : kAmd;
}

// Source: Intel SDM vol. 2, "CPUID", leaf 0DH, sub-leaves 2 to 62.
XsaveLayout LayoutOf(const Registers& registers,
                     const ToldCpu* told_untrusted) {
  constexpr uint32_t kLeaf = 0xd;
  constexpr uint32_t kAligned = 2;  // of ECX
  XsaveLayout layout = UsualLayout(registers);
  if (told_untrusted == nullptr) {
    return layout;
  }
  for (uint32_t i = kComponentAvx; i < layout.components.size(); ++i) {
    const x86::CpuidResult told = told_untrusted->cpuid.Find(kLeaf, i);
    if (told.eax != 0) {
      layout.components[i] = {.size_bytes = told.eax,
                              .offset = told.ebx,
                              .aligned = (told.ecx & kAligned) != 0};
    }
  }
  return layout;
}

void RestoreXsave(std::span<const std::byte> area, const XsaveLayout& layout,
                  Registers& registers) {
  FxsaveArea legacy;
  XsaveHeader header;
  std::memcpy(&legacy, area.data(), sizeof(legacy));
  std::memcpy(&header, area.data() + sizeof(legacy), sizeof(header));
  registers.mxcsr = legacy.pointers.mxcsr;
  RestoreLegacy(legacy, header.xstate_bv, registers);
  for (const unsigned component : kExtendedComponents) {
    const uint64_t offset = layout.components[component].offset;
    const size_t size = ComponentBytes(component);
    std::span<const std::byte> bytes;
    if (HasComponent(header.xstate_bv, component) &&
        offset + size <= area.size()) {
      bytes = area.subspan(offset, size);
    }
    RestoreComponent(component, bytes, registers);
  }
}

}  // namespace clew::machine
