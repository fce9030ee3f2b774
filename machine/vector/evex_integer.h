#ifndef CLEW_MACHINE_VECTOR_EVEX_INTEGER_H_
#define CLEW_MACHINE_VECTOR_EVEX_INTEGER_H_

#include "machine/vector/wide_op.h"

// Integer operations that came with AVX-512 and make each element from those at
// its place, named after their mnemonics (Intel SDM vol. 2). None reads or
// writes MXCSR. (What SSE or AVX2 has too is in integer.h, shuffle.h and
// permute.h, as an operation on a lane.)
//
// X(name, mnemonic, type of an element, sources, what makes an element)
//
// Sources are as of WideOp: 1: op(src), 2: op(dst, src), 3: op(dst, third,
// src). What makes an element is in evex_integer.cc.
#define CLEW_EVEX_INTEGER_OPS(X)                                  \
  X(Vpabsq, "vpabsq", int64_t, 1, Absolute)                       \
  X(Vpminsq, "vpminsq", int64_t, 2, Least)                        \
  X(Vpminuq, "vpminuq", uint64_t, 2, Least)                       \
  X(Vpmaxsq, "vpmaxsq", int64_t, 2, Greatest)                     \
  X(Vpmaxuq, "vpmaxuq", uint64_t, 2, Greatest)                    \
  X(Vpmullq, "vpmullq", uint64_t, 2, LowProduct)                  \
  X(Vpsllvw, "vpsllvw", uint16_t, 2, ShiftedLeft)                 \
  X(Vpsrlvw, "vpsrlvw", uint16_t, 2, ShiftedRight)                \
  X(Vpsravw, "vpsravw", int16_t, 2, ShiftedWithSign)              \
  X(Vpsravq, "vpsravq", int64_t, 2, ShiftedWithSign)              \
  X(Vprold, "vprold", uint32_t, 1, RotatedLeftByImm)              \
  X(Vprolq, "vprolq", uint64_t, 1, RotatedLeftByImm)              \
  X(Vprord, "vprord", uint32_t, 1, RotatedRightByImm)             \
  X(Vprorq, "vprorq", uint64_t, 1, RotatedRightByImm)             \
  X(Vprolvd, "vprolvd", uint32_t, 2, RotatedLeft)                 \
  X(Vprolvq, "vprolvq", uint64_t, 2, RotatedLeft)                 \
  X(Vprorvd, "vprorvd", uint32_t, 2, RotatedRight)                \
  X(Vprorvq, "vprorvq", uint64_t, 2, RotatedRight)                \
  X(Vpshldw, "vpshldw", uint16_t, 2, ShiftedInFromRightByImm)     \
  X(Vpshldd, "vpshldd", uint32_t, 2, ShiftedInFromRightByImm)     \
  X(Vpshldq, "vpshldq", uint64_t, 2, ShiftedInFromRightByImm)     \
  X(Vpshrdw, "vpshrdw", uint16_t, 2, ShiftedInFromLeftByImm)      \
  X(Vpshrdd, "vpshrdd", uint32_t, 2, ShiftedInFromLeftByImm)      \
  X(Vpshrdq, "vpshrdq", uint64_t, 2, ShiftedInFromLeftByImm)      \
  X(Vpshldvw, "vpshldvw", uint16_t, 3, ShiftedInFromRight)        \
  X(Vpshldvd, "vpshldvd", uint32_t, 3, ShiftedInFromRight)        \
  X(Vpshldvq, "vpshldvq", uint64_t, 3, ShiftedInFromRight)        \
  X(Vpshrdvw, "vpshrdvw", uint16_t, 3, ShiftedInFromLeft)         \
  X(Vpshrdvd, "vpshrdvd", uint32_t, 3, ShiftedInFromLeft)         \
  X(Vpshrdvq, "vpshrdvq", uint64_t, 3, ShiftedInFromLeft)         \
  X(Vplzcntd, "vplzcntd", uint32_t, 1, LeadingZeros)              \
  X(Vplzcntq, "vplzcntq", uint64_t, 1, LeadingZeros)              \
  X(Vpopcntb, "vpopcntb", uint8_t, 1, SetBits)                    \
  X(Vpopcntw, "vpopcntw", uint16_t, 1, SetBits)                   \
  X(Vpopcntd, "vpopcntd", uint32_t, 1, SetBits)                   \
  X(Vpopcntq, "vpopcntq", uint64_t, 1, SetBits)                   \
  X(Vpmadd52luq, "vpmadd52luq", uint64_t, 3, PlusLowOfProduct52)  \
  X(Vpmadd52huq, "vpmadd52huq", uint64_t, 3, PlusHighOfProduct52) \
  X(Vpdpbusd, "vpdpbusd", int32_t, 3, PlusDotOfBytes)             \
  X(Vpdpbusds, "vpdpbusds", int32_t, 3, SaturatedPlusDotOfBytes)  \
  X(Vpdpwssd, "vpdpwssd", int32_t, 3, PlusDotOfWords)             \
  X(Vpdpwssds, "vpdpwssds", int32_t, 3, SaturatedPlusDotOfWords)

namespace clew::machine {

#define CLEW_DECLARE(Name, mnemonic, Element, sources, Makes) \
  void Name(Wide& dst, const Wide& src, WideState& state);
CLEW_EVEX_INTEGER_OPS(CLEW_DECLARE)
#undef CLEW_DECLARE

// Each byte of a quadword is eight bits of src's quadword from where the byte
// of dst says, around its end.
void Vpmultishiftqb(Wide& dst, const Wide& src, WideState& state);

// In each lane.
void Psraq(Vec128& dst, const Vec128& src, VecState& state);
void PsraqImm(Vec128& dst, const Vec128& src, VecState& state);
void Vdbpsadbw(Vec128& dst, const Vec128& src, VecState& state);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_EVEX_INTEGER_H_
