#ifndef CLEW_MACHINE_VECTOR_FUSED_H_
#define CLEW_MACHINE_VECTOR_FUSED_H_

#include "machine/vector/vec_op.h"

// FMA and F16C, named after their mnemonics (Intel SDM vol. 2). Each is the
// host's instruction: x86::kByHost of common/x86/features.h has them. Rounding
// and exceptions are as in machine/vector/float.h.
//
// A fused operation has three sources, of which the first is the destination:
// dst = op(dst, state.third, src), the digits of its name saying which are
// multiplied.
//
// X(name, mnemonic, bytes of a memory source, lanes of its VEX forms)
#define CLEW_FUSED_PACKED(X, Name, name) \
  X(Name##ps, name "ps", 16, 2)          \
  X(Name##pd, name "pd", 16, 2)
#define CLEW_FUSED_ALL(X, Name, name) \
  CLEW_FUSED_PACKED(X, Name, name)    \
  X(Name##ss, name "ss", 4, 1)        \
  X(Name##sd, name "sd", 8, 1)
#define CLEW_FUSED_ORDERS(rows, X, Name, name)                  \
  rows(X, Name##132, name "132") rows(X, Name##213, name "213") \
      rows(X, Name##231, name "231")
#define CLEW_VECTOR_FUSED_OPS(X)                                  \
  CLEW_FUSED_ORDERS(CLEW_FUSED_ALL, X, Vfmadd, "vfmadd")          \
  CLEW_FUSED_ORDERS(CLEW_FUSED_ALL, X, Vfmsub, "vfmsub")          \
  CLEW_FUSED_ORDERS(CLEW_FUSED_ALL, X, Vfnmadd, "vfnmadd")        \
  CLEW_FUSED_ORDERS(CLEW_FUSED_ALL, X, Vfnmsub, "vfnmsub")        \
  CLEW_FUSED_ORDERS(CLEW_FUSED_PACKED, X, Vfmaddsub, "vfmaddsub") \
  CLEW_FUSED_ORDERS(CLEW_FUSED_PACKED, X, Vfmsubadd, "vfmsubadd")

namespace clew::machine {

#define CLEW_DECLARE(Name, mnemonic, bytes, vex_lanes) \
  void Name(Vec128& dst, const Vec128& src, VecState& state);
CLEW_VECTOR_FUSED_OPS(CLEW_DECLARE)
#undef CLEW_DECLARE

// From half precision: four elements in the low half of src.
void Vcvtph2ps(Vec128& dst, const Vec128& src, VecState& state);
// To half precision, into the low half of dst; the upper one is cleared. Bits
// 1:0 of the immediate say how to round, or bit 2 that MXCSR does.
void Vcvtps2ph(Vec128& dst, const Vec128& src, VecState& state);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_FUSED_H_
