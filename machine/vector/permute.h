#ifndef CLEW_MACHINE_VECTOR_PERMUTE_H_
#define CLEW_MACHINE_VECTOR_PERMUTE_H_

#include <array>

#include "machine/vector/vec_op.h"

// Operations that only AVX and AVX2 have, named after their mnemonics (Intel
// SDM vol. 2). None reads or writes MXCSR.

namespace clew::machine {

// In each lane, with a control or count for each element in src.
void Vpermilps(Vec128& dst, const Vec128& src, VecState& state);
void Vpermilpd(Vec128& dst, const Vec128& src, VecState& state);
void Vpsllvd(Vec128& dst, const Vec128& src, VecState& state);
void Vpsllvq(Vec128& dst, const Vec128& src, VecState& state);
void Vpsrlvd(Vec128& dst, const Vec128& src, VecState& state);
void Vpsrlvq(Vec128& dst, const Vec128& src, VecState& state);
void Vpsravd(Vec128& dst, const Vec128& src, VecState& state);

// By bits of the immediate, of which each lane has two. (VPERMILPS by an
// immediate is PSHUFD.)
void VpermilpdImm(Vec128& dst, const Vec128& src, VecState& state);

// Across lanes: element i is the one of `from` that the low three bits of
// element i of `indices` name. VPERMPS is the same.
using Vec256 = std::array<Vec128, 2>;
Vec256 Vpermd(const Vec256& indices, const Vec256& from);

// To flags, as Ptest, of the top bits of the elements.
uint64_t Vtestps(const Vec128& dst, const Vec128& src, VecState& state);
uint64_t Vtestpd(const Vec128& dst, const Vec128& src, VecState& state);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_PERMUTE_H_
