#ifndef CLEW_MACHINE_VECTOR_SHUFFLE_H_
#define CLEW_MACHINE_VECTOR_SHUFFLE_H_

#include "machine/vector/vec_op.h"

// Operations that select, move or count bits: those with an immediate byte
// (state.imm), those with a mask (state.third), and those between a
// vector and a general register. Named after their mnemonics
// (Intel SDM vol. 2).

namespace clew::machine {

void Pshufd(Vec128& dst, const Vec128& src, VecState& state);
void Pshuflw(Vec128& dst, const Vec128& src, VecState& state);
void Pshufhw(Vec128& dst, const Vec128& src, VecState& state);
void Shufps(Vec128& dst, const Vec128& src, VecState& state);
void Shufpd(Vec128& dst, const Vec128& src, VecState& state);
void Palignr(Vec128& dst, const Vec128& src, VecState& state);
void Pslldq(Vec128& dst, const Vec128& src, VecState& state);
void Psrldq(Vec128& dst, const Vec128& src, VecState& state);
void PsllwImm(Vec128& dst, const Vec128& src, VecState& state);
void PslldImm(Vec128& dst, const Vec128& src, VecState& state);
void PsllqImm(Vec128& dst, const Vec128& src, VecState& state);
void PsrlwImm(Vec128& dst, const Vec128& src, VecState& state);
void PsrldImm(Vec128& dst, const Vec128& src, VecState& state);
void PsrlqImm(Vec128& dst, const Vec128& src, VecState& state);
void PsrawImm(Vec128& dst, const Vec128& src, VecState& state);
void PsradImm(Vec128& dst, const Vec128& src, VecState& state);
void Blendps(Vec128& dst, const Vec128& src, VecState& state);
void Blendpd(Vec128& dst, const Vec128& src, VecState& state);
void Pblendw(Vec128& dst, const Vec128& src, VecState& state);
void Blendvps(Vec128& dst, const Vec128& src, VecState& state);
void Blendvpd(Vec128& dst, const Vec128& src, VecState& state);
void Pblendvb(Vec128& dst, const Vec128& src, VecState& state);
void Insertps(Vec128& dst, const Vec128& src, VecState& state);
void Mpsadbw(Vec128& dst, const Vec128& src, VecState& state);

// From a general register or narrow memory: the value is in src.q[0].
void Pinsrb(Vec128& dst, const Vec128& src, VecState& state);
void Pinsrw(Vec128& dst, const Vec128& src, VecState& state);
void Pinsrd(Vec128& dst, const Vec128& src, VecState& state);

// To a general register.
uint64_t Pextrb(const Vec128& src, VecState& state);
uint64_t Pextrw(const Vec128& src, VecState& state);
uint64_t Pextrd(const Vec128& src, VecState& state);  // EXTRACTPS too
uint64_t Pmovmskb(const Vec128& src, VecState& state);
uint64_t Movmskps(const Vec128& src, VecState& state);
uint64_t Movmskpd(const Vec128& src, VecState& state);

// The forms on MMX registers; PSHUFW is Pshuflw, PMOVMSKB the same as above.
namespace mmx {
void Palignr(Vec128& dst, const Vec128& src, VecState& state);
void Pinsrw(Vec128& dst, const Vec128& src, VecState& state);
uint64_t Pextrw(const Vec128& src, VecState& state);
void PsllwImm(Vec128& dst, const Vec128& src, VecState& state);
void PslldImm(Vec128& dst, const Vec128& src, VecState& state);
void PsllqImm(Vec128& dst, const Vec128& src, VecState& state);
void PsrlwImm(Vec128& dst, const Vec128& src, VecState& state);
void PsrldImm(Vec128& dst, const Vec128& src, VecState& state);
void PsrlqImm(Vec128& dst, const Vec128& src, VecState& state);
void PsrawImm(Vec128& dst, const Vec128& src, VecState& state);
void PsradImm(Vec128& dst, const Vec128& src, VecState& state);
}  // namespace mmx

// To flags: ZF if dst & src is 0, CF if ~dst & src is 0.
uint64_t Ptest(const Vec128& dst, const Vec128& src, VecState& state);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_SHUFFLE_H_
