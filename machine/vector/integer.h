#ifndef CLEW_MACHINE_VECTOR_INTEGER_H_
#define CLEW_MACHINE_VECTOR_INTEGER_H_

#include "machine/vector/vec_op.h"

// Integer operations of MMX and SSE to SSE4.2 on whole registers, without an
// immediate byte. Each is named after its mnemonic and does what the Intel SDM
// vol. 2 says for the xmm, xmm form; in namespace mmx for the mm, mm form, with
// the operands in q[0]. None reads or writes MXCSR. (Bitwise logic and moves of
// halves are in machine/insn/sse_move.cc: they carry a shadow.)
//
// X(name, mnemonic, bytes of a memory source (XMM form), whether dst is read,
//   lanes of its VEX forms)
//
// The VEX forms, whose mnemonic has a v in front, do the same in each lane: 2
// if there is one of 256 bits, 1 if only one of 128, 0 if the machine has none.
// One that reads dst has a first source of its own in its place.

// With an MMX form, whose memory source has 8 bytes.
#define CLEW_VECTOR_MMX_OPS(X)           \
  X(Paddb, "paddb", 16, true, 2)         \
  X(Paddw, "paddw", 16, true, 2)         \
  X(Paddd, "paddd", 16, true, 2)         \
  X(Paddq, "paddq", 16, true, 2)         \
  X(Psubb, "psubb", 16, true, 2)         \
  X(Psubw, "psubw", 16, true, 2)         \
  X(Psubd, "psubd", 16, true, 2)         \
  X(Psubq, "psubq", 16, true, 2)         \
  X(Paddsb, "paddsb", 16, true, 2)       \
  X(Paddsw, "paddsw", 16, true, 2)       \
  X(Paddusb, "paddusb", 16, true, 2)     \
  X(Paddusw, "paddusw", 16, true, 2)     \
  X(Psubsb, "psubsb", 16, true, 2)       \
  X(Psubsw, "psubsw", 16, true, 2)       \
  X(Psubusb, "psubusb", 16, true, 2)     \
  X(Psubusw, "psubusw", 16, true, 2)     \
  X(Pmullw, "pmullw", 16, true, 2)       \
  X(Pmulhw, "pmulhw", 16, true, 2)       \
  X(Pmulhuw, "pmulhuw", 16, true, 2)     \
  X(Pmuludq, "pmuludq", 16, true, 2)     \
  X(Pmulhrsw, "pmulhrsw", 16, true, 2)   \
  X(Pmaddwd, "pmaddwd", 16, true, 2)     \
  X(Pmaddubsw, "pmaddubsw", 16, true, 2) \
  X(Psadbw, "psadbw", 16, true, 2)       \
  X(Pavgb, "pavgb", 16, true, 2)         \
  X(Pavgw, "pavgw", 16, true, 2)         \
  X(Pminub, "pminub", 16, true, 2)       \
  X(Pminsw, "pminsw", 16, true, 2)       \
  X(Pmaxub, "pmaxub", 16, true, 2)       \
  X(Pmaxsw, "pmaxsw", 16, true, 2)       \
  X(Pcmpeqb, "pcmpeqb", 16, true, 2)     \
  X(Pcmpeqw, "pcmpeqw", 16, true, 2)     \
  X(Pcmpeqd, "pcmpeqd", 16, true, 2)     \
  X(Pcmpgtb, "pcmpgtb", 16, true, 2)     \
  X(Pcmpgtw, "pcmpgtw", 16, true, 2)     \
  X(Pcmpgtd, "pcmpgtd", 16, true, 2)     \
  X(Psllw, "psllw", 16, true, 2)         \
  X(Pslld, "pslld", 16, true, 2)         \
  X(Psllq, "psllq", 16, true, 2)         \
  X(Psrlw, "psrlw", 16, true, 2)         \
  X(Psrld, "psrld", 16, true, 2)         \
  X(Psrlq, "psrlq", 16, true, 2)         \
  X(Psraw, "psraw", 16, true, 2)         \
  X(Psrad, "psrad", 16, true, 2)         \
  X(Packsswb, "packsswb", 16, true, 2)   \
  X(Packssdw, "packssdw", 16, true, 2)   \
  X(Packuswb, "packuswb", 16, true, 2)   \
  X(Punpckhbw, "punpckhbw", 16, true, 2) \
  X(Punpckhwd, "punpckhwd", 16, true, 2) \
  X(Punpckhdq, "punpckhdq", 16, true, 2) \
  X(Pshufb, "pshufb", 16, true, 2)       \
  X(Phaddw, "phaddw", 16, true, 2)       \
  X(Phaddd, "phaddd", 16, true, 2)       \
  X(Phaddsw, "phaddsw", 16, true, 2)     \
  X(Phsubw, "phsubw", 16, true, 2)       \
  X(Phsubd, "phsubd", 16, true, 2)       \
  X(Phsubsw, "phsubsw", 16, true, 2)     \
  X(Psignb, "psignb", 16, true, 2)       \
  X(Psignw, "psignw", 16, true, 2)       \
  X(Psignd, "psignd", 16, true, 2)       \
  X(Pabsb, "pabsb", 16, false, 2)        \
  X(Pabsw, "pabsw", 16, false, 2)        \
  X(Pabsd, "pabsd", 16, false, 2)

// With an MMX form, whose memory source has 4 bytes.
#define CLEW_VECTOR_MMX_LOW_OPS(X)       \
  X(Punpcklbw, "punpcklbw", 16, true, 2) \
  X(Punpcklwd, "punpcklwd", 16, true, 2) \
  X(Punpckldq, "punpckldq", 16, true, 2)

// On XMM registers only.
#define CLEW_VECTOR_XMM_OPS(X)              \
  X(Pmuldq, "pmuldq", 16, true, 2)          \
  X(Pmulld, "pmulld", 16, true, 2)          \
  X(Pminsb, "pminsb", 16, true, 2)          \
  X(Pminsd, "pminsd", 16, true, 2)          \
  X(Pminuw, "pminuw", 16, true, 2)          \
  X(Pminud, "pminud", 16, true, 2)          \
  X(Pmaxsb, "pmaxsb", 16, true, 2)          \
  X(Pmaxsd, "pmaxsd", 16, true, 2)          \
  X(Pmaxuw, "pmaxuw", 16, true, 2)          \
  X(Pmaxud, "pmaxud", 16, true, 2)          \
  X(Pcmpeqq, "pcmpeqq", 16, true, 2)        \
  X(Pcmpgtq, "pcmpgtq", 16, true, 2)        \
  X(Packusdw, "packusdw", 16, true, 2)      \
  X(Unpcklps, "unpcklps", 16, true, 2)      \
  X(Unpckhps, "unpckhps", 16, true, 2)      \
  X(Phminposuw, "phminposuw", 16, false, 1) \
  X(Movsldup, "movsldup", 16, false, 2)     \
  X(Movshdup, "movshdup", 16, false, 2)     \
  X(Pmovsxbw, "pmovsxbw", 8, false, 2)      \
  X(Pmovsxbd, "pmovsxbd", 4, false, 2)      \
  X(Pmovsxbq, "pmovsxbq", 2, false, 2)      \
  X(Pmovsxwd, "pmovsxwd", 8, false, 2)      \
  X(Pmovsxwq, "pmovsxwq", 4, false, 2)      \
  X(Pmovsxdq, "pmovsxdq", 8, false, 2)      \
  X(Pmovzxbw, "pmovzxbw", 8, false, 2)      \
  X(Pmovzxbd, "pmovzxbd", 4, false, 2)      \
  X(Pmovzxbq, "pmovzxbq", 2, false, 2)      \
  X(Pmovzxwd, "pmovzxwd", 8, false, 2)      \
  X(Pmovzxwq, "pmovzxwq", 4, false, 2)      \
  X(Pmovzxdq, "pmovzxdq", 8, false, 2)

#define CLEW_VECTOR_INTEGER_OPS(X) \
  CLEW_VECTOR_MMX_OPS(X) CLEW_VECTOR_MMX_LOW_OPS(X) CLEW_VECTOR_XMM_OPS(X)

namespace clew::machine {

#define CLEW_DECLARE(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  void Name(Vec128& dst, const Vec128& src, VecState& state);
CLEW_VECTOR_INTEGER_OPS(CLEW_DECLARE)
namespace mmx {
CLEW_VECTOR_MMX_OPS(CLEW_DECLARE)
CLEW_VECTOR_MMX_LOW_OPS(CLEW_DECLARE)
}  // namespace mmx
#undef CLEW_DECLARE

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_INTEGER_H_
