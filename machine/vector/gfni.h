#ifndef CLEW_MACHINE_VECTOR_GFNI_H_
#define CLEW_MACHINE_VECTOR_GFNI_H_

#include "machine/vector/vec_op.h"

// GFNI, named after its mnemonics (Intel SDM vol. 2): arithmetic of bytes in
// GF(2^8), whose polynomial is x^8 + x^4 + x^3 + x + 1. None reads or writes
// MXCSR.

namespace clew::machine {

void Gf2p8mulb(Vec128& dst, const Vec128& src, VecState& state);
// Of each byte of dst, or of its inverse: the product with the matrix of 8 by 8
// bits in the same quadword of src, plus the immediate.
void Gf2p8affineqb(Vec128& dst, const Vec128& src, VecState& state);
void Gf2p8affineinvqb(Vec128& dst, const Vec128& src, VecState& state);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_GFNI_H_
