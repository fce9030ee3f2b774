#ifndef CLEW_MACHINE_VECTOR_STRING_COMPARE_H_
#define CLEW_MACHINE_VECTOR_STRING_COMPARE_H_

#include "machine/vector/vec_op.h"

// PCMPESTRI, PCMPESTRM, PCMPISTRI and PCMPISTRM: all 256 immediates.
//
// Source: Intel SDM vol. 2, "PCMPESTRI" and vol. 2, "Imm8 Control Byte
// Operation for PCMPESTRI / PCMPESTRM / PCMPISTRI / PCMPISTRM".

namespace clew::machine {

// What one comparison leaves behind; an instruction uses index or mask.
struct StringCompare {
  uint64_t index = 0;  // for ECX
  Vec128 mask;         // for XMM0
  uint64_t flags = 0;  // all of kFlagsArithmetic
};

// The string `a` is the first operand (a register), `b` the second. Explicit
// lengths are signed; their absolute values count, up to the number of
// elements.
StringCompare CompareImplicit(const Vec128& a, const Vec128& b, uint8_t imm);
StringCompare CompareExplicit(const Vec128& a, int64_t a_length,
                              const Vec128& b, int64_t b_length, uint8_t imm);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_STRING_COMPARE_H_
