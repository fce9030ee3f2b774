#ifndef CLEW_MACHINE_VECTOR_FLOAT_H_
#define CLEW_MACHINE_VECTOR_FLOAT_H_

#include "machine/vector/vec_op.h"

// Floating point of SSE to SSE4.2: bit-exact results, NaN payloads included,
// under the rounding, FTZ and DAZ of state.mxcsr; exception flags are added to
// state.mxcsr. All exceptions are taken as masked.
//
// A recording made under QEMU 7.2 can differ from this in one bit: it never
// sets MXCSR.DE for a denormal operand.
#define CLEW_VECTOR_FLOAT_OPS(X) \
  X(Addps, "addps")              \
  X(Addpd, "addpd")              \
  X(Addss, "addss")              \
  X(Addsd, "addsd")              \
  X(Subps, "subps")              \
  X(Subpd, "subpd")              \
  X(Subss, "subss")              \
  X(Subsd, "subsd")              \
  X(Mulps, "mulps")              \
  X(Mulpd, "mulpd")              \
  X(Mulss, "mulss")              \
  X(Mulsd, "mulsd")              \
  X(Divps, "divps")              \
  X(Divpd, "divpd")              \
  X(Divss, "divss")              \
  X(Divsd, "divsd")              \
  X(Minps, "minps")              \
  X(Minpd, "minpd")              \
  X(Minss, "minss")              \
  X(Minsd, "minsd")              \
  X(Maxps, "maxps")              \
  X(Maxpd, "maxpd")              \
  X(Maxss, "maxss")              \
  X(Maxsd, "maxsd")              \
  X(Sqrtps, "sqrtps")            \
  X(Sqrtpd, "sqrtpd")            \
  X(Sqrtss, "sqrtss")            \
  X(Sqrtsd, "sqrtsd")            \
  X(Haddps, "haddps")            \
  X(Haddpd, "haddpd")            \
  X(Hsubps, "hsubps")            \
  X(Hsubpd, "hsubpd")            \
  X(Addsubps, "addsubps")        \
  X(Addsubpd, "addsubpd")        \
  X(Cvtps2pd, "cvtps2pd")        \
  X(Cvtpd2ps, "cvtpd2ps")        \
  X(Cvtsd2ss, "cvtsd2ss")        \
  X(Cvtss2sd, "cvtss2sd")        \
  X(Cvtdq2ps, "cvtdq2ps")        \
  X(Cvtps2dq, "cvtps2dq")        \
  X(Cvttps2dq, "cvttps2dq")      \
  X(Cvttpd2dq, "cvttpd2dq")      \
  X(Cvtpd2dq, "cvtpd2dq")        \
  X(Cvtdq2pd, "cvtdq2pd")

namespace clew::machine {

#define CLEW_DECLARE(Name, mnemonic) \
  void Name(Vec128& dst, const Vec128& src, VecState& state);
CLEW_VECTOR_FLOAT_OPS(CLEW_DECLARE)

// With an immediate byte.
void Cmpps(Vec128& dst, const Vec128& src, VecState& state);
void Cmppd(Vec128& dst, const Vec128& src, VecState& state);
void Cmpss(Vec128& dst, const Vec128& src, VecState& state);
void Cmpsd(Vec128& dst, const Vec128& src, VecState& state);
void Roundps(Vec128& dst, const Vec128& src, VecState& state);
void Roundpd(Vec128& dst, const Vec128& src, VecState& state);
void Roundss(Vec128& dst, const Vec128& src, VecState& state);
void Roundsd(Vec128& dst, const Vec128& src, VecState& state);
void Dpps(Vec128& dst, const Vec128& src, VecState& state);
void Dppd(Vec128& dst, const Vec128& src, VecState& state);

// Approximations: each CPU model has its own. These are what QEMU 7.2 computes,
// because that is what made the recording: 1/x and 1/sqrt(x) in single
// precision, without exception flags.
void Rcpps(Vec128& dst, const Vec128& src, VecState& state);
void Rcpss(Vec128& dst, const Vec128& src, VecState& state);
void Rsqrtps(Vec128& dst, const Vec128& src, VecState& state);
void Rsqrtss(Vec128& dst, const Vec128& src, VecState& state);

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

// To flags: ZF, PF, CF; the others are cleared.
uint64_t Ucomiss(const Vec128& dst, const Vec128& src, VecState& state);
uint64_t Ucomisd(const Vec128& dst, const Vec128& src, VecState& state);
uint64_t Comiss(const Vec128& dst, const Vec128& src, VecState& state);
uint64_t Comisd(const Vec128& dst, const Vec128& src, VecState& state);

#undef CLEW_DECLARE

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_FLOAT_H_
