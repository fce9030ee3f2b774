#ifndef CLEW_MACHINE_VECTOR_EVEX_PERMUTE_H_
#define CLEW_MACHINE_VECTOR_EVEX_PERMUTE_H_

#include "machine/vector/wide_op.h"

// Operations of AVX-512 that move elements to other places, or change their
// size, named after their mnemonics (Intel SDM vol. 2). None reads or writes
// MXCSR. (What moves them within a lane, in the way of SSE or AVX2, is in
// integer.h, shuffle.h and permute.h.)

// X(mnemonic, operation, element of the result, element of the source)
//
// The result has as many elements as the source.
#define CLEW_EVEX_CONVERSIONS(X)                  \
  X("vpmovsxbw", Converted, int16_t, int8_t)      \
  X("vpmovsxbd", Converted, int32_t, int8_t)      \
  X("vpmovsxbq", Converted, int64_t, int8_t)      \
  X("vpmovsxwd", Converted, int32_t, int16_t)     \
  X("vpmovsxwq", Converted, int64_t, int16_t)     \
  X("vpmovsxdq", Converted, int64_t, int32_t)     \
  X("vpmovzxbw", Converted, uint16_t, uint8_t)    \
  X("vpmovzxbd", Converted, uint32_t, uint8_t)    \
  X("vpmovzxbq", Converted, uint64_t, uint8_t)    \
  X("vpmovzxwd", Converted, uint32_t, uint16_t)   \
  X("vpmovzxwq", Converted, uint64_t, uint16_t)   \
  X("vpmovzxdq", Converted, uint64_t, uint32_t)   \
  X("vpmovwb", Converted, uint8_t, uint16_t)      \
  X("vpmovdb", Converted, uint8_t, uint32_t)      \
  X("vpmovdw", Converted, uint16_t, uint32_t)     \
  X("vpmovqb", Converted, uint8_t, uint64_t)      \
  X("vpmovqw", Converted, uint16_t, uint64_t)     \
  X("vpmovqd", Converted, uint32_t, uint64_t)     \
  X("vpmovswb", SaturatedTo, int8_t, int16_t)     \
  X("vpmovsdb", SaturatedTo, int8_t, int32_t)     \
  X("vpmovsdw", SaturatedTo, int16_t, int32_t)    \
  X("vpmovsqb", SaturatedTo, int8_t, int64_t)     \
  X("vpmovsqw", SaturatedTo, int16_t, int64_t)    \
  X("vpmovsqd", SaturatedTo, int32_t, int64_t)    \
  X("vpmovuswb", SaturatedTo, uint8_t, uint16_t)  \
  X("vpmovusdb", SaturatedTo, uint8_t, uint32_t)  \
  X("vpmovusdw", SaturatedTo, uint16_t, uint32_t) \
  X("vpmovusqb", SaturatedTo, uint8_t, uint64_t)  \
  X("vpmovusqw", SaturatedTo, uint16_t, uint64_t) \
  X("vpmovusqd", SaturatedTo, uint32_t, uint64_t)

namespace clew::machine {

// Only for the rows above.
template <class To, class From>
void Converted(Wide& dst, const Wide& src, WideState& state);
template <class To, class From>
void SaturatedTo(Wide& dst, const Wide& src, WideState& state);

// U is one of uint8_t, uint16_t, uint32_t, uint64_t; of Valign and Vpconflict
// one of the last two. An index counts modulo as many elements as there are to
// choose from.

// Element i is the one of src that element i of dst names.
template <class U>
void Vperm(Wide& dst, const Wide& src, WideState& state);
// Of state.third with src behind it, the one that element i of dst names.
template <class U>
void Vpermi2(Wide& dst, const Wide& src, WideState& state);
// Of dst with src behind it, the one that element i of state.third names.
template <class U>
void Vpermt2(Wide& dst, const Wide& src, WideState& state);
// The elements of src that are selected, side by side; they are what is
// selected then.
template <class U>
void Vpcompress(Wide& dst, const Wide& src, WideState& state);
// The reverse: the first elements of src, where the result is selected.
template <class U>
void Vpexpand(Wide& dst, const Wide& src, WideState& state);
// Of src with dst behind it, the elements from the immediate on.
template <class U>
void Valign(Wide& dst, const Wide& src, WideState& state);
// Bit j of element i: element j, which is below it, is equal to it.
template <class U>
void Vpconflict(Wide& dst, const Wide& src, WideState& state);

// VPERMQ and VPERMPD by an immediate: in each half of 256 bits.
void VpermqImm(Wide& dst, const Wide& src, WideState& state);
// VSHUFF32X4 and its kin: whole lanes, the lower ones of dst, the upper of src.
void Vshuff32x4(Wide& dst, const Wide& src, WideState& state);

// The part that the immediate names, of kLanes lanes, 1 or 2: VINSERTF32X4 and
// its kin replace it by the low part of src, VEXTRACTF32X4 and its kin move it
// to the low part.
template <unsigned kLanes>
void Vinsert(Wide& dst, const Wide& src, WideState& state);
template <unsigned kLanes>
void Vextract(Wide& dst, const Wide& src, WideState& state);

// In each lane.
void Vpunpcklqdq(Vec128& dst, const Vec128& src, VecState& state);
void Vpunpckhqdq(Vec128& dst, const Vec128& src, VecState& state);
void Vmovddup(Vec128& dst, const Vec128& src, VecState& state);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_EVEX_PERMUTE_H_
