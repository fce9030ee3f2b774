#ifndef CLEW_MACHINE_VECTOR_EVEX_FLOAT_H_
#define CLEW_MACHINE_VECTOR_EVEX_FLOAT_H_

#include "machine/vector/wide_op.h"

// Floating point that AVX512F and AVX512DQ added, under the same promises as
// machine/vector/float.h. Functions are named after mnemonics, a suffix 32 or
// 64 telling of the width of a general register.
//
// Source: Intel SDM vol. 2, "Instruction Set Reference, V".

// Elements to elements.
//
// X(name, mnemonic, type of an element of the result, of the source, whether it
//   truncates)
#define CLEW_EVEX_TO_INTEGER_OPS(X)                     \
  X(Vcvtps2udq, "vcvtps2udq", uint32_t, float, false)   \
  X(Vcvttps2udq, "vcvttps2udq", uint32_t, float, true)  \
  X(Vcvtpd2udq, "vcvtpd2udq", uint32_t, double, false)  \
  X(Vcvttpd2udq, "vcvttpd2udq", uint32_t, double, true) \
  X(Vcvtps2qq, "vcvtps2qq", int64_t, float, false)      \
  X(Vcvttps2qq, "vcvttps2qq", int64_t, float, true)     \
  X(Vcvtpd2qq, "vcvtpd2qq", int64_t, double, false)     \
  X(Vcvttpd2qq, "vcvttpd2qq", int64_t, double, true)    \
  X(Vcvtps2uqq, "vcvtps2uqq", uint64_t, float, false)   \
  X(Vcvttps2uqq, "vcvttps2uqq", uint64_t, float, true)  \
  X(Vcvtpd2uqq, "vcvtpd2uqq", uint64_t, double, false)  \
  X(Vcvttpd2uqq, "vcvttpd2uqq", uint64_t, double, true)
// X(name, mnemonic, type of an element of the result, of the source)
#define CLEW_EVEX_FROM_INTEGER_OPS(X)           \
  X(Vcvtudq2ps, "vcvtudq2ps", float, uint32_t)  \
  X(Vcvtudq2pd, "vcvtudq2pd", double, uint32_t) \
  X(Vcvtqq2ps, "vcvtqq2ps", float, int64_t)     \
  X(Vcvtqq2pd, "vcvtqq2pd", double, int64_t)    \
  X(Vcvtuqq2ps, "vcvtuqq2ps", float, uint64_t)  \
  X(Vcvtuqq2pd, "vcvtuqq2pd", double, uint64_t)

// X(name, mnemonic, type of the element, whether it truncates)
#define CLEW_EVEX_TO_GPR_OPS(X)              \
  X(Vcvtss2usi, "vcvtss2usi", float, false)  \
  X(Vcvtsd2usi, "vcvtsd2usi", double, false) \
  X(Vcvttss2usi, "vcvttss2usi", float, true) \
  X(Vcvttsd2usi, "vcvttsd2usi", double, true)
// X(name, mnemonic, type of the element)
#define CLEW_EVEX_FROM_GPR_OPS(X)    \
  X(Vcvtusi2ss, "vcvtusi2ss", float) \
  X(Vcvtusi2sd, "vcvtusi2sd", double)

// Each of these has four forms: ps, pd, ss, sd. The scalar ones have two
// sources at least, and keep the other elements of the first one; VFIXUPIMM, of
// which that is the destination, those of the second. What is not selected is
// not computed.
//
// X(name, mnemonic, sources of the packed forms)
#define CLEW_EVEX_FLOAT_OPS(X) \
  X(Vgetexp, "vgetexp", 1)     \
  X(Vgetmant, "vgetmant", 1)   \
  X(Vrndscale, "vrndscale", 1) \
  X(Vreduce, "vreduce", 1)     \
  X(Vscalef, "vscalef", 2)     \
  X(Vrange, "vrange", 2)       \
  X(Vfixupimm, "vfixupimm", 3)

// Approximations by tables: the host's own instructions.
//
// X(name, mnemonic)
#define CLEW_EVEX_APPROXIMATE_OPS(X) \
  X(Vrcp14, "vrcp14")                \
  X(Vrsqrt14, "vrsqrt14")

namespace clew::machine {

#define CLEW_DECLARE(Name, ...) \
  void Name(Wide& dst, const Wide& src, WideState& state);
CLEW_EVEX_TO_INTEGER_OPS(CLEW_DECLARE)
CLEW_EVEX_FROM_INTEGER_OPS(CLEW_DECLARE)
#undef CLEW_DECLARE

#define CLEW_DECLARE(Name, ...)                          \
  uint64_t Name##32(const Vec128& src, VecState& state); \
  uint64_t Name##64(const Vec128& src, VecState& state);
CLEW_EVEX_TO_GPR_OPS(CLEW_DECLARE)
#undef CLEW_DECLARE

// The integer is src.q[0] (the low half of it for 32 bits).
#define CLEW_DECLARE(Name, ...)                                    \
  void Name##32(Vec128 & dst, const Vec128& src, VecState& state); \
  void Name##64(Vec128 & dst, const Vec128& src, VecState& state);
CLEW_EVEX_FROM_GPR_OPS(CLEW_DECLARE)
#undef CLEW_DECLARE

#define CLEW_DECLARE(Name, ...)                                \
  void Name##ps(Wide& dst, const Wide& src, WideState& state); \
  void Name##pd(Wide& dst, const Wide& src, WideState& state); \
  void Name##ss(Wide& dst, const Wide& src, WideState& state); \
  void Name##sd(Wide& dst, const Wide& src, WideState& state);
CLEW_EVEX_FLOAT_OPS(CLEW_DECLARE)
#undef CLEW_DECLARE

// REQUIRES: the host has AVX512F and AVX512VL.
#define CLEW_DECLARE(Name, ...)                                   \
  void Name##ps(Vec128& dst, const Vec128& src, VecState& state); \
  void Name##pd(Vec128& dst, const Vec128& src, VecState& state); \
  void Name##ss(Vec128& dst, const Vec128& src, VecState& state); \
  void Name##sd(Vec128& dst, const Vec128& src, VecState& state);
CLEW_EVEX_APPROXIMATE_OPS(CLEW_DECLARE)
#undef CLEW_DECLARE

// To an opmask, of elements of 4 and 8 bytes: by which classes of the immediate
// an element is of one.
uint64_t Vfpclassps(const Wide& first, const Wide& src, WideState& state);
uint64_t Vfpclasspd(const Wide& first, const Wide& src, WideState& state);

// A comparison that sets all bits of an element or none (Vcmpps), to an opmask;
// U is such an element.
template <VecOp kOp, class U>
uint64_t CompareToOpmask(const Wide& first, const Wide& src, WideState& state) {
  Wide compared = first;
  InLanes<kOp>(compared, src, state);
  const auto elements = ElementsOf<U>(compared);
  uint64_t bits = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    bits |= uint64_t{elements[i] & 1u} << i;
  }
  return bits;
}

// A conversion of the low half of 128 bits to elements twice as wide.
template <VecOp kOp>
void WidenLanes(Wide& dst, const Wide& src, WideState& state) {
  Wide halves;
  for (unsigned i = 0; i < kVecLanes; ++i) {
    halves[i] = {{src[i / 2].q[i % 2], 0}};
  }
  InLanes<kOp>(dst, halves, state);
}

// A conversion to elements half as wide, in the low half of 128 bits.
template <VecOp kOp>
void NarrowLanes(Wide& dst, const Wide& src, WideState& state) {
  Wide halves = {};
  InLanes<kOp>(halves, src, state);
  for (unsigned i = 0; i < kVecLanes; ++i) {
    dst[i / 2].q[i % 2] = halves[i].q[0];
  }
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_EVEX_FLOAT_H_
