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
// X(name, mnemonic, bytes of a memory source, whether dst is read, lanes of its
//   VEX forms), as in machine/vector/integer.h
#define CLEW_VECTOR_FLOAT_OPS(X)          \
  X(Addps, "addps", 16, true, 2)          \
  X(Addpd, "addpd", 16, true, 2)          \
  X(Addss, "addss", 4, true, 1)           \
  X(Addsd, "addsd", 8, true, 1)           \
  X(Subps, "subps", 16, true, 2)          \
  X(Subpd, "subpd", 16, true, 2)          \
  X(Subss, "subss", 4, true, 1)           \
  X(Subsd, "subsd", 8, true, 1)           \
  X(Mulps, "mulps", 16, true, 2)          \
  X(Mulpd, "mulpd", 16, true, 2)          \
  X(Mulss, "mulss", 4, true, 1)           \
  X(Mulsd, "mulsd", 8, true, 1)           \
  X(Divps, "divps", 16, true, 2)          \
  X(Divpd, "divpd", 16, true, 2)          \
  X(Divss, "divss", 4, true, 1)           \
  X(Divsd, "divsd", 8, true, 1)           \
  X(Minps, "minps", 16, true, 2)          \
  X(Minpd, "minpd", 16, true, 2)          \
  X(Minss, "minss", 4, true, 1)           \
  X(Minsd, "minsd", 8, true, 1)           \
  X(Maxps, "maxps", 16, true, 2)          \
  X(Maxpd, "maxpd", 16, true, 2)          \
  X(Maxss, "maxss", 4, true, 1)           \
  X(Maxsd, "maxsd", 8, true, 1)           \
  X(Sqrtps, "sqrtps", 16, false, 2)       \
  X(Sqrtpd, "sqrtpd", 16, false, 2)       \
  X(Sqrtss, "sqrtss", 4, true, 1)         \
  X(Sqrtsd, "sqrtsd", 8, true, 1)         \
  X(Haddps, "haddps", 16, true, 2)        \
  X(Haddpd, "haddpd", 16, true, 2)        \
  X(Hsubps, "hsubps", 16, true, 2)        \
  X(Hsubpd, "hsubpd", 16, true, 2)        \
  X(Addsubps, "addsubps", 16, true, 2)    \
  X(Addsubpd, "addsubpd", 16, true, 2)    \
  X(Cvtps2pd, "cvtps2pd", 8, false, 2)    \
  X(Cvtpd2ps, "cvtpd2ps", 16, false, 1)   \
  X(Cvtsd2ss, "cvtsd2ss", 8, true, 1)     \
  X(Cvtss2sd, "cvtss2sd", 4, true, 1)     \
  X(Cvtdq2ps, "cvtdq2ps", 16, false, 2)   \
  X(Cvtps2dq, "cvtps2dq", 16, false, 2)   \
  X(Cvttps2dq, "cvttps2dq", 16, false, 2) \
  X(Cvttpd2dq, "cvttpd2dq", 16, false, 1) \
  X(Cvtpd2dq, "cvtpd2dq", 16, false, 1)   \
  X(Cvtdq2pd, "cvtdq2pd", 8, false, 2)

// Approximations: each CPU model has its own. They are the host's, or what QEMU
// 7.2 computes where it made the recording: 1/x and 1/sqrt(x) in single
// precision, without exception flags.
#define CLEW_VECTOR_APPROXIMATE_OPS(X) \
  X(Rcpps, "rcpps", 16, false, 2)      \
  X(Rcpss, "rcpss", 4, true, 1)        \
  X(Rsqrtps, "rsqrtps", 16, false, 2)  \
  X(Rsqrtss, "rsqrtss", 4, true, 1)

// With an immediate byte, of which a comparison uses three bits; its VEX forms
// are below.
#define CLEW_VECTOR_FLOAT_IMM_OPS(X)  \
  X(Cmpps, "cmpps", 16, true, 0)      \
  X(Cmppd, "cmppd", 16, true, 0)      \
  X(Cmpss, "cmpss", 4, true, 0)       \
  X(Cmpsd, "cmpsd", 8, true, 0)       \
  X(Roundps, "roundps", 16, false, 2) \
  X(Roundpd, "roundpd", 16, false, 2) \
  X(Roundss, "roundss", 4, true, 1)   \
  X(Roundsd, "roundsd", 8, true, 1)   \
  X(Dpps, "dpps", 16, true, 2)        \
  X(Dppd, "dppd", 16, true, 1)

namespace clew::machine {

#define CLEW_DECLARE(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  void Name(Vec128& dst, const Vec128& src, VecState& state);
CLEW_VECTOR_FLOAT_OPS(CLEW_DECLARE)
CLEW_VECTOR_APPROXIMATE_OPS(CLEW_DECLARE)
CLEW_VECTOR_FLOAT_IMM_OPS(CLEW_DECLARE)
#undef CLEW_DECLARE

// The VEX forms of the comparisons: five bits of the immediate count.
void Vcmpps(Vec128& dst, const Vec128& src, VecState& state);
void Vcmppd(Vec128& dst, const Vec128& src, VecState& state);
void Vcmpss(Vec128& dst, const Vec128& src, VecState& state);
void Vcmpsd(Vec128& dst, const Vec128& src, VecState& state);

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
