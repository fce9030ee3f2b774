#ifndef CLEW_MACHINE_VECTOR_FLOAT_H_
#define CLEW_MACHINE_VECTOR_FLOAT_H_

#include "machine/vector/vec_op.h"

// Floating point of SSE to SSE4.2: bit-exact results, NaN payloads included,
// under the rounding, FTZ and DAZ of state.mxcsr; exception flags are added to
// state.mxcsr. All exceptions are taken as masked.
//
// QEMU 7.2 computes the same, but for: MXCSR.DE (denormal operand), which it
// does not set; which of two NaN operands a sum takes; MIN and MAX of a
// denormal under DAZ.
//
// X(name, mnemonic, bytes of a memory source, whether dst is read)
#define CLEW_VECTOR_FLOAT_OPS(X)       \
  X(Addps, "addps", 16, true)          \
  X(Addpd, "addpd", 16, true)          \
  X(Addss, "addss", 4, true)           \
  X(Addsd, "addsd", 8, true)           \
  X(Subps, "subps", 16, true)          \
  X(Subpd, "subpd", 16, true)          \
  X(Subss, "subss", 4, true)           \
  X(Subsd, "subsd", 8, true)           \
  X(Mulps, "mulps", 16, true)          \
  X(Mulpd, "mulpd", 16, true)          \
  X(Mulss, "mulss", 4, true)           \
  X(Mulsd, "mulsd", 8, true)           \
  X(Divps, "divps", 16, true)          \
  X(Divpd, "divpd", 16, true)          \
  X(Divss, "divss", 4, true)           \
  X(Divsd, "divsd", 8, true)           \
  X(Minps, "minps", 16, true)          \
  X(Minpd, "minpd", 16, true)          \
  X(Minss, "minss", 4, true)           \
  X(Minsd, "minsd", 8, true)           \
  X(Maxps, "maxps", 16, true)          \
  X(Maxpd, "maxpd", 16, true)          \
  X(Maxss, "maxss", 4, true)           \
  X(Maxsd, "maxsd", 8, true)           \
  X(Sqrtps, "sqrtps", 16, false)       \
  X(Sqrtpd, "sqrtpd", 16, false)       \
  X(Sqrtss, "sqrtss", 4, true)         \
  X(Sqrtsd, "sqrtsd", 8, true)         \
  X(Haddps, "haddps", 16, true)        \
  X(Haddpd, "haddpd", 16, true)        \
  X(Hsubps, "hsubps", 16, true)        \
  X(Hsubpd, "hsubpd", 16, true)        \
  X(Addsubps, "addsubps", 16, true)    \
  X(Addsubpd, "addsubpd", 16, true)    \
  X(Cvtps2pd, "cvtps2pd", 8, false)    \
  X(Cvtpd2ps, "cvtpd2ps", 16, false)   \
  X(Cvtsd2ss, "cvtsd2ss", 8, true)     \
  X(Cvtss2sd, "cvtss2sd", 4, true)     \
  X(Cvtdq2ps, "cvtdq2ps", 16, false)   \
  X(Cvtps2dq, "cvtps2dq", 16, false)   \
  X(Cvttps2dq, "cvttps2dq", 16, false) \
  X(Cvttpd2dq, "cvttpd2dq", 16, false) \
  X(Cvtpd2dq, "cvtpd2dq", 16, false)   \
  X(Cvtdq2pd, "cvtdq2pd", 8, false)

// Approximations: each CPU model has its own. These are what QEMU 7.2 computes,
// because that is what made the recording: 1/x and 1/sqrt(x) in single
// precision, without exception flags.
#define CLEW_VECTOR_APPROXIMATE_OPS(X) \
  X(Rcpps, "rcpps", 16, false)         \
  X(Rcpss, "rcpss", 4, true)           \
  X(Rsqrtps, "rsqrtps", 16, false)     \
  X(Rsqrtss, "rsqrtss", 4, true)

// With an immediate byte, of which a comparison uses three bits.
#define CLEW_VECTOR_FLOAT_IMM_OPS(X) \
  X(Cmpps, "cmpps", 16, true)        \
  X(Cmppd, "cmppd", 16, true)        \
  X(Cmpss, "cmpss", 4, true)         \
  X(Cmpsd, "cmpsd", 8, true)         \
  X(Roundps, "roundps", 16, false)   \
  X(Roundpd, "roundpd", 16, false)   \
  X(Roundss, "roundss", 4, true)     \
  X(Roundsd, "roundsd", 8, true)     \
  X(Dpps, "dpps", 16, true)          \
  X(Dppd, "dppd", 16, true)

namespace clew::machine {

#define CLEW_DECLARE(Name, mnemonic, bytes, reads_dst) \
  void Name(Vec128& dst, const Vec128& src, VecState& state);
CLEW_VECTOR_FLOAT_OPS(CLEW_DECLARE)
CLEW_VECTOR_APPROXIMATE_OPS(CLEW_DECLARE)
CLEW_VECTOR_FLOAT_IMM_OPS(CLEW_DECLARE)
#undef CLEW_DECLARE

// From a general register: the integer is src.q[0] (the low half of it for the
// 32-bit forms).
void Cvtsi2ss32(Vec128& dst, const Vec128& src, VecState& state);
void Cvtsi2ss64(Vec128& dst, const Vec128& src, VecState& state);
void Cvtsi2sd32(Vec128& dst, const Vec128& src, VecState& state);
void Cvtsi2sd64(Vec128& dst, const Vec128& src, VecState& state);

// To a general register.
uint64_t Cvtss2si32(const Vec128& src, VecState& state);
uint64_t Cvtss2si64(const Vec128& src, VecState& state);
uint64_t Cvtsd2si32(const Vec128& src, VecState& state);
uint64_t Cvtsd2si64(const Vec128& src, VecState& state);
uint64_t Cvttss2si32(const Vec128& src, VecState& state);
uint64_t Cvttss2si64(const Vec128& src, VecState& state);
uint64_t Cvttsd2si32(const Vec128& src, VecState& state);
uint64_t Cvttsd2si64(const Vec128& src, VecState& state);

// Between an MMX register, in the low half, and an XMM register.
namespace mmx {
void Cvtpi2ps(Vec128& dst, const Vec128& src, VecState& state);
void Cvtpi2pd(Vec128& dst, const Vec128& src, VecState& state);
void Cvtps2pi(Vec128& dst, const Vec128& src, VecState& state);
void Cvttps2pi(Vec128& dst, const Vec128& src, VecState& state);
void Cvtpd2pi(Vec128& dst, const Vec128& src, VecState& state);
void Cvttpd2pi(Vec128& dst, const Vec128& src, VecState& state);
}  // namespace mmx

// To flags: ZF, PF, CF; the others are cleared.
uint64_t Ucomiss(const Vec128& dst, const Vec128& src, VecState& state);
uint64_t Ucomisd(const Vec128& dst, const Vec128& src, VecState& state);
uint64_t Comiss(const Vec128& dst, const Vec128& src, VecState& state);
uint64_t Comisd(const Vec128& dst, const Vec128& src, VecState& state);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_FLOAT_H_
