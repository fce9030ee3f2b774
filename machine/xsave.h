#ifndef CLEW_MACHINE_XSAVE_H_
#define CLEW_MACHINE_XSAVE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

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
  VecLane xmm;
  std::array<std::byte, 48> reserved;
  std::array<std::byte, 48> software;  // left to the operating system
};
static_assert(sizeof(FxsaveArea) == 512);
static_assert(offsetof(FxsaveArea, x87) == 32);
static_assert(offsetof(FxsaveArea, xmm) == 160);

// Sets the x87 state, MMX registers included.
void RestoreX87(const FxsaveArea& area, X87& x87);

// Sets x87, MXCSR and the vector registers of what the machine has of `area`,
// an XSAVE area in the standard format, as XRSTOR does: what the area says is
// in its initial state is set to that. REQUIRES: it has a header.
void RestoreXsave(std::span<const std::byte> area, Registers& registers);

// State components, by their bits in XCR0, XSTATE_BV and XCOMP_BV.
inline constexpr unsigned kComponentX87 = 0;
inline constexpr unsigned kComponentSse = 1;
inline constexpr unsigned kComponentAvx = 2;  // Registers::vec[1]

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

// Where the components behind the header lie.
struct XsaveLayout {
  // Without a word of the CPU: AVX alone, where all CPUs that have it keep it.
  std::array<XsaveComponent, 63> components = {
      {{}, {}, {sizeof(VecLane), sizeof(FxsaveArea) + sizeof(XsaveHeader)}}};

  // Returns the offset of a component in an area with that XCOMP_BV, whose bit
  // 63 says that the format is the compacted one ("Extended Region of an XSAVE
  // Area"); nullopt if area or CPU do not have the component, or the area has
  // one in front of it that the CPU does not. REQUIRES: component is 2 to 62.
  std::optional<uint64_t> OffsetOf(unsigned component, uint64_t xcomp_bv) const;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_XSAVE_H_
