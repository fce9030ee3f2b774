#ifndef CLEW_MACHINE_VECTOR_SHUFFLE_H_
#define CLEW_MACHINE_VECTOR_SHUFFLE_H_

#include "machine/vector/vec_op.h"

// Operations that select, move or count bits: those with an immediate byte
// (state.imm), those with xmm0 as a mask (state.mask), and those between a
// vector and a general register. Named after their mnemonics (Intel SDM vol.
// 2).

namespace clew::machine {

#define CLEW_VECTOR_SHUFFLE_OPS(X)                                             \
  X(Pshufd)                                                                    \
  X(Pshuflw) X(Pshufhw) X(Shufps) X(Shufpd) X(Palignr) X(Pslldq) X(Psrldq)     \
      X(PsllwImm) X(PslldImm) X(PsllqImm) X(PsrlwImm) X(PsrldImm) X(PsrlqImm)  \
          X(PsrawImm) X(PsradImm) X(Blendps) X(Blendpd) X(Pblendw) X(Blendvps) \
              X(Blendvpd) X(Pblendvb) X(Insertps) X(Mpsadbw)

#define CLEW_DECLARE(Name) \
  void Name(Vec128& dst, const Vec128& src, VecState& state);
CLEW_VECTOR_SHUFFLE_OPS(CLEW_DECLARE)

// From a general register or narrow memory: the value is in src.q[0].
CLEW_DECLARE(Pinsrb)
CLEW_DECLARE(Pinsrw)
CLEW_DECLARE(Pinsrd)
CLEW_DECLARE(Pinsrq)

// Moves within the registers.
CLEW_DECLARE(CopyAll)       // MOVAPS, MOVQ, MOVD: all of src
CLEW_DECLARE(CopyLow32)     // MOVSS xmm, xmm: the upper 96 bits of dst stay
CLEW_DECLARE(CopyLow64)     // MOVSD xmm, xmm; MOVLPS xmm, m64
CLEW_DECLARE(CopyToHigh)    // MOVHPS xmm, m64: the low half of src
CLEW_DECLARE(ZeroExtend64)  // MOVQ xmm, xmm
#undef CLEW_DECLARE

// To a general register.
uint64_t Pextrb(const Vec128& src, VecState& state);
uint64_t Pextrw(const Vec128& src, VecState& state);
uint64_t Pextrd(const Vec128& src, VecState& state);  // EXTRACTPS too
uint64_t Pextrq(const Vec128& src, VecState& state);
uint64_t Pmovmskb(const Vec128& src, VecState& state);
uint64_t Movmskps(const Vec128& src, VecState& state);
uint64_t Movmskpd(const Vec128& src, VecState& state);
uint64_t LowHalf(const Vec128& src, VecState& state);  // MOVD, MOVQ

// To flags: ZF if dst & src is 0, CF if ~dst & src is 0.
uint64_t Ptest(const Vec128& dst, const Vec128& src, VecState& state);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_SHUFFLE_H_
