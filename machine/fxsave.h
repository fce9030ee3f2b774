#ifndef CLEW_MACHINE_FXSAVE_H_
#define CLEW_MACHINE_FXSAVE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "machine/registers.h"

namespace clew::machine {

// What FXSAVE stores (Intel SDM vol. 1, "FXSAVE Area") and what a signal frame
// has (linux arch/x86/include/uapi/asm/sigcontext.h, struct _fpstate_64). There
// is no x87 opcode and no x87 pointer: a CPU without a pending exception stores
// zeros.
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
  std::array<std::byte, 96> reserved;
};
static_assert(sizeof(FxsaveArea) == 512);
static_assert(offsetof(FxsaveArea, x87) == 32);
static_assert(offsetof(FxsaveArea, xmm) == 160);

// The x87 state, MMX registers included.
void RestoreX87(const FxsaveArea& area, X87& x87);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_FXSAVE_H_
