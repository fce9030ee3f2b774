#ifndef CLEW_MACHINE_XSAVE_H_
#define CLEW_MACHINE_XSAVE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/inputs.h"
#include "machine/registers.h"

namespace clew::machine {

// The XSAVE area (Intel SDM vol. 1, "Managing State Using the XSAVE Feature
// Set"): what FXSAVE stores, a header, and the state components that are
// neither x87 nor SSE. A signal frame has one, too (linux
// arch/x86/include/uapi/asm/sigcontext.h, struct _xstate).

// The legacy region ("FXSAVE Area"). There is no x87 opcode and no x87 pointer:
// a CPU without a pending exception stores zeros.
struct FxsaveHead {
  uint16_t control;
  uint16_t status;
  uint16_t tags;  // one bit a register, set where it is not empty
  uint16_t opcode;
};
struct FxsaveMxcsr {
  uint64_t insn_pointer;
  uint64_t data_pointer;
  uint32_t mxcsr;
  uint32_t mxcsr_mask;
};
struct FxsaveArea {
  FxsaveHead head;
  FxsaveMxcsr pointers;
  std::array<Float80, 8> x87;  // st(0) to st(7)
  LowVecLane xmm;
  std::array<std::byte, 48> reserved;
  std::array<std::byte, 48> software;  // left to the operating system
};
static_assert(sizeof(FxsaveArea) == 512);
static_assert(offsetof(FxsaveArea, x87) == 32);
static_assert(offsetof(FxsaveArea, xmm) == 160);

// State components, by their bits in XCR0, XSTATE_BV and XCOMP_BV.
inline constexpr unsigned kComponentX87 = 0;
inline constexpr unsigned kComponentSse = 1;  // XMM0 to XMM15
inline constexpr unsigned kComponentAvx = 2;  // bits 255:128 of YMM0 to YMM15
inline constexpr unsigned kComponentOpmask = 5;
inline constexpr unsigned kComponentZmm = 6;  // bits 511:256 of ZMM0 to ZMM15
inline constexpr unsigned kComponentHighZmm = 7;  // ZMM16 to ZMM31
// Those of the machine that lie behind the header.
inline constexpr std::array kExtendedComponents = {
    kComponentAvx, kComponentOpmask, kComponentZmm, kComponentHighZmm};

constexpr uint64_t ComponentBit(unsigned component) {
  return uint64_t{1} << component;
}

// What of the vector registers a component has: of 16 registers the same
// quadwords, one register behind the other.
struct VecPart {
  unsigned first_register = 0;
  unsigned first_quad = 0;  // as Registers::quad counts
  unsigned quads = 0;       // of each register; 0: it has none of them
};
constexpr VecPart VecPartOf(unsigned component) {
  switch (component) {
    case kComponentSse:
      return {0, 0, 2};
    case kComponentAvx:
      return {0, 2, 2};
    case kComponentZmm:
      return {0, 4, 4};
    case kComponentHighZmm:
      return {kLowVecRegisters, 0, kVecQuads};
    default:
      return {};
  }
}

// Calls f(number, i) for each quadword of a vector register that a component
// has, in the order of memory.
template <class F>
void EachQuadOf(unsigned component, F f) {
  const VecPart part = VecPartOf(component);
  for (unsigned number = 0; number < kLowVecRegisters; ++number) {
    for (unsigned i = 0; i < part.quads; ++i) {
      f(part.first_register + number, part.first_quad + i);
    }
  }
}

// The size of SSE's part of the legacy region, or of an extended component.
constexpr size_t ComponentBytes(unsigned component) {
  return component == kComponentOpmask
             ? sizeof(Registers::opmask)
             : sizeof(uint64_t) * VecPartOf(component).quads * kLowVecRegisters;
}
inline constexpr size_t kComponentBytesMax = ComponentBytes(kComponentHighZmm);
static_assert(ComponentBytes(kComponentSse) == sizeof(FxsaveArea::xmm));

// Store a component, and set it to what an area has of it. Without bytes it is
// set to its initial state. After setting it is in use exactly if there were
// bytes. REQUIRES: it is SSE or an extended one, and there are ComponentBytes
// of it (or none, to set it).
void StoreComponent(const Registers& registers, unsigned component,
                    std::span<std::byte> bytes);
void RestoreComponent(unsigned component, std::span<const std::byte> bytes,
                      Registers& registers);

// Returns XINUSE. An Intel CPU knows of AVX and what came later whether it was
// used, and takes SSE for used after each switch of threads, such as a step of
// the recorder's; of others, what is not in its initial state.
uint64_t ComponentsInUse(const Registers& registers);

// Sets the x87 state, MMX registers included.
void RestoreX87(const FxsaveArea& area, X87& x87);

// Sets x87 and SSE, each to what `area` has of it where its bit in `present` is
// set, else to its initial state.
void RestoreLegacy(const FxsaveArea& area, uint64_t present,
                   Registers& registers);

// Sets x87, MXCSR, and vector and opmask registers to their initial state.
void InitialiseExtendedState(Registers& registers);

// Behind the legacy region ("XSAVE Header").
struct XsaveHeader {
  uint64_t xstate_bv;  // components that are not in their initial state
  uint64_t xcomp_bv;   // 0: the standard format, see XsaveLayout::OffsetOf
  std::array<uint64_t, 6> reserved;
};
static_assert(sizeof(XsaveHeader) == 64);

// What CPUID says of component i in leaf 0DH, sub-leaf i.
struct XsaveComponent {
  uint32_t size_bytes = 0;  // EAX; 0: the CPU does not have it
  uint32_t offset = 0;      // EBX: in the standard format
  bool aligned = false;     // ECX, bit 1: to 64 bytes in the compacted format
};

// AVX, where all CPUs that have it keep it, and from `opmask_offset` on those
// of AVX-512, one behind the other, as they are on all CPUs that have them.
constexpr std::array<XsaveComponent, 63> ComponentsWithOpmaskAt(
    uint32_t opmask_offset) {
  std::array<XsaveComponent, 63> components = {};
  components[kComponentAvx].offset = sizeof(FxsaveArea) + sizeof(XsaveHeader);
  components[kComponentOpmask].offset = opmask_offset;
  for (const unsigned component : kExtendedComponents) {
    XsaveComponent& place = components[component];
    place.size_bytes = static_cast<uint32_t>(ComponentBytes(component));
    if (component > kComponentOpmask) {
      const XsaveComponent& before = components[component - 1];
      place.offset = before.offset + before.size_bytes;
    }
  }
  return components;
}

// Where the components behind the header lie.
struct XsaveLayout {
  // Without a word of the CPU: as on Intel's, which leave room for MPX.
  std::array<XsaveComponent, 63> components = ComponentsWithOpmaskAt(1088);

  // Returns the offset of a component in an area with that XCOMP_BV, whose bit
  // 63 says that the format is the compacted one ("Extended Region of an XSAVE
  // Area"); nullopt if area or CPU do not have the component, or the area has
  // one in front of it that the CPU does not. REQUIRES: component is 2 to 62.
  std::optional<uint64_t> OffsetOf(unsigned component, uint64_t xcomp_bv) const;
};

// Returns the layout of the CPU of these registers: that of its maker's CPUs.
const XsaveLayout& UsualLayout(const Registers& registers);
// The same, but for the components that CPUID told of. `told_untrusted` may be
// nullptr: nothing was told.
XsaveLayout LayoutOf(const Registers& registers, const ToldCpu* told_untrusted);

// Sets x87, MXCSR and the vector registers of what the machine has of `area`,
// an XSAVE area in the standard format, as XRSTOR does: what the area says is
// in its initial state, or has no room for, is set to that. REQUIRES: it has a
// header.
void RestoreXsave(std::span<const std::byte> area, const XsaveLayout& layout,
                  Registers& registers);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_XSAVE_H_
