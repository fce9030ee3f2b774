#ifndef CLEW_MACHINE_REGISTERS_H_
#define CLEW_MACHINE_REGISTERS_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "common/inputs.h"

namespace clew::machine {

// The width of the vector registers: 32 of four lanes of 128 bits, ZMM0 to
// ZMM31. Whoever needs their number or size asks these.
inline constexpr unsigned kVecRegisters = 32;
inline constexpr unsigned kVecLanes = 4;
inline constexpr unsigned kVecQuads = 2 * kVecLanes;
// Those that an encoding without EVEX can name: the first ones.
inline constexpr unsigned kLowVecRegisters = 16;
inline constexpr unsigned kOpmasks = 8;  // k0 to k7

// 128 bits of a vector register, least significant first.
struct Vec128 {
  std::array<uint64_t, 2> q = {};
  bool operator==(const Vec128&) const = default;
};
inline constexpr unsigned kLaneBytes = sizeof(Vec128);

// The same 128 bits of every vector register.
using VecLane = std::array<Vec128, kVecRegisters>;
// The same 128 bits of those that an encoding without EVEX can name, as the
// FXSAVE area and the AVX component of an XSAVE area have them.
using LowVecLane = std::array<Vec128, kLowVecRegisters>;

// An x87 register: 80-bit extended precision.
struct Float80 {
  uint64_t significand = 0;
  uint16_t sign_exponent = 0;
  bool operator==(const Float80&) const = default;
};

struct X87 {
  std::array<Float80, 8> regs;  // physical, not relative to the top
  uint16_t control = 0x37f;
  uint16_t status = 0;    // with the top in bits 11..13
  uint16_t tag = 0xffff;  // two bits a register, as FNSTENV stores them
  // Since it was last initialised: XINUSE[0], which is not of the values.
  bool in_use = false;
  bool operator==(const X87&) const = default;
};

// Everything of a thread that an x86-64 user-mode instruction can see, up to
// AVX-512. Architectural values: flags are not lazy here.
struct Registers {
  std::array<uint64_t, 16> gpr = {};  // indexed by clew::Gpr
  uint64_t rip = 0;
  uint64_t rflags = 0x202;
  uint64_t fs_base = 0;
  uint64_t gs_base = 0;
  // vec[0] is XMM0 to XMM31, vec[1] bits 255:128 of YMM0 to YMM31, vec[2] and
  // vec[3] the rest of ZMM0 to ZMM31. (By lanes, because what an encoding
  // without EVEX does is done lane by lane.)
  std::array<VecLane, kVecLanes> vec = {};
  std::array<uint64_t, kOpmasks> opmask = {};
  uint32_t mxcsr = 0x1f80;
  // What the CPU's FXSAVE tells of MXCSR; 0: see is_of_qemu.
  uint32_t mxcsr_mask = 0;
  // XINUSE[2] as Intel's CPUs have it: set by what writes a vector register
  // with a vector length of 256 bits, be it with what was there; VZEROUPPER and
  // VZEROALL clear. Source: Intel SDM vol. 1, "Processor Tracking of
  // XSAVE-Managed State", which leaves it open, and what XGETBV tells of a CPU.
  bool avx_in_use = false;
  // The same of XINUSE[5], the opmask registers; [6], what ZMM0 to ZMM15 have
  // above YMM0 to YMM15; [7], ZMM16 to ZMM31.
  bool opmask_in_use = false;
  bool zmm_in_use = false;
  bool high_zmm_in_use = false;
  X87 x87;

  // QEMU 7.2 stands for CPU and kernel. Its FXSAVE tells 0xffff as mask, and
  // leaves reserved bytes alone; its signals leave x87 and vectors alone.
  bool is_of_qemu() const { return mxcsr_mask == 0; }
  // Where manuals leave open what a CPU does, makers differ. Only AMD's CPUs
  // have bit 17 of MXCSR. Source: AMD64 Architecture Programmer's Manual vol.
  // 1, "MXCSR Register", MM.
  bool is_of_intel() const {
    constexpr uint32_t kMisalignedMask = 1u << 17;
    return !is_of_qemu() && (mxcsr_mask & kMisalignedMask) == 0;
  }

  // Bits 64 * i to 64 * i + 63 of a vector register. REQUIRES: i < kVecQuads.
  uint64_t& quad(unsigned number, unsigned i) {
    return vec[i / 2][number].q[i % 2];
  }
  const uint64_t& quad(unsigned number, unsigned i) const {
    return vec[i / 2][number].q[i % 2];
  }

  // Sets a lane of the registers that an encoding without EVEX can name.
  void SetLowLane(unsigned lane, const LowVecLane& values) {
    std::ranges::copy(values, vec[lane].begin());
  }
  LowVecLane low_lane(unsigned lane) const {
    LowVecLane values;
    std::ranges::copy_n(vec[lane].begin(), kLowVecRegisters, values.begin());
    return values;
  }

  bool operator==(const Registers&) const = default;
};

// A digest of all fields. States that differ in any one have, but for
// accidents, another digest: the search takes equal ones for one dead state.
uint64_t DigestOf(const Registers& registers);

// Bits of rflags.
inline constexpr uint64_t kFlagCarry = 1u << 0;
inline constexpr uint64_t kFlagParity = 1u << 2;
inline constexpr uint64_t kFlagAdjust = 1u << 4;
inline constexpr uint64_t kFlagZero = 1u << 6;
inline constexpr uint64_t kFlagSign = 1u << 7;
inline constexpr uint64_t kFlagTrap = 1u << 8;
inline constexpr uint64_t kFlagDirection = 1u << 10;
inline constexpr uint64_t kFlagOverflow = 1u << 11;
inline constexpr uint64_t kFlagId = 1u << 21;
inline constexpr uint64_t kFlagsArithmetic = kFlagCarry | kFlagParity |
                                             kFlagAdjust | kFlagZero |
                                             kFlagSign | kFlagOverflow;

}  // namespace clew::machine

#endif  // CLEW_MACHINE_REGISTERS_H_
