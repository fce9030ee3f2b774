#ifndef CLEW_MACHINE_VECTOR_INTEGER_H_
#define CLEW_MACHINE_VECTOR_INTEGER_H_

#include "machine/vector/vec_op.h"

// Integer operations of MMX and SSE to SSE4.2 on whole registers, without an
// immediate byte. Each is named after its mnemonic and does what the Intel SDM
// vol. 2 says for the xmm, xmm form; in namespace mmx for the mm, mm form, with
// the operands in q[0]. None reads or writes MXCSR. (Bitwise logic and moves of
// halves are in machine/insn/sse_move.cc: they carry a shadow.)
//
// X(name, mnemonic, bytes of a memory source (XMM form), whether dst is read)

// With an MMX form, whose memory source has 8 bytes.
#define CLEW_VECTOR_MMX_OPS(X)        \
  X(Paddb, "paddb", 16, true)         \
  X(Paddw, "paddw", 16, true)         \
  X(Paddd, "paddd", 16, true)         \
  X(Paddq, "paddq", 16, true)         \
  X(Psubb, "psubb", 16, true)         \
  X(Psubw, "psubw", 16, true)         \
  X(Psubd, "psubd", 16, true)         \
  X(Psubq, "psubq", 16, true)         \
  X(Paddsb, "paddsb", 16, true)       \
  X(Paddsw, "paddsw", 16, true)       \
  X(Paddusb, "paddusb", 16, true)     \
  X(Paddusw, "paddusw", 16, true)     \
  X(Psubsb, "psubsb", 16, true)       \
  X(Psubsw, "psubsw", 16, true)       \
  X(Psubusb, "psubusb", 16, true)     \
  X(Psubusw, "psubusw", 16, true)     \
  X(Pmullw, "pmullw", 16, true)       \
  X(Pmulhw, "pmulhw", 16, true)       \
  X(Pmulhuw, "pmulhuw", 16, true)     \
  X(Pmuludq, "pmuludq", 16, true)     \
  X(Pmulhrsw, "pmulhrsw", 16, true)   \
  X(Pmaddwd, "pmaddwd", 16, true)     \
  X(Pmaddubsw, "pmaddubsw", 16, true) \
  X(Psadbw, "psadbw", 16, true)       \
  X(Pavgb, "pavgb", 16, true)         \
  X(Pavgw, "pavgw", 16, true)         \
  X(Pminub, "pminub", 16, true)       \
  X(Pminsw, "pminsw", 16, true)       \
  X(Pmaxub, "pmaxub", 16, true)       \
  X(Pmaxsw, "pmaxsw", 16, true)       \
  X(Pcmpeqb, "pcmpeqb", 16, true)     \
  X(Pcmpeqw, "pcmpeqw", 16, true)     \
  X(Pcmpeqd, "pcmpeqd", 16, true)     \
  X(Pcmpgtb, "pcmpgtb", 16, true)     \
  X(Pcmpgtw, "pcmpgtw", 16, true)     \
  X(Pcmpgtd, "pcmpgtd", 16, true)     \
  X(Psllw, "psllw", 16, true)         \
  X(Pslld, "pslld", 16, true)         \
  X(Psllq, "psllq", 16, true)         \
  X(Psrlw, "psrlw", 16, true)         \
  X(Psrld, "psrld", 16, true)         \
  X(Psrlq, "psrlq", 16, true)         \
  X(Psraw, "psraw", 16, true)         \
  X(Psrad, "psrad", 16, true)         \
  X(Packsswb, "packsswb", 16, true)   \
  X(Packssdw, "packssdw", 16, true)   \
  X(Packuswb, "packuswb", 16, true)   \
  X(Punpckhbw, "punpckhbw", 16, true) \
  X(Punpckhwd, "punpckhwd", 16, true) \
  X(Punpckhdq, "punpckhdq", 16, true) \
  X(Pshufb, "pshufb", 16, true)       \
  X(Phaddw, "phaddw", 16, true)       \
  X(Phaddd, "phaddd", 16, true)       \
  X(Phaddsw, "phaddsw", 16, true)     \
  X(Phsubw, "phsubw", 16, true)       \
  X(Phsubd, "phsubd", 16, true)       \
  X(Phsubsw, "phsubsw", 16, true)     \
  X(Psignb, "psignb", 16, true)       \
  X(Psignw, "psignw", 16, true)       \
  X(Psignd, "psignd", 16, true)       \
  X(Pabsb, "pabsb", 16, false)        \
  X(Pabsw, "pabsw", 16, false)        \
  X(Pabsd, "pabsd", 16, false)

// With an MMX form, whose memory source has 4 bytes.
#define CLEW_VECTOR_MMX_LOW_OPS(X)    \
  X(Punpcklbw, "punpcklbw", 16, true) \
  X(Punpcklwd, "punpcklwd", 16, true) \
  X(Punpckldq, "punpckldq", 16, true)

// On XMM registers only.
#define CLEW_VECTOR_XMM_OPS(X)           \
  X(Pmuldq, "pmuldq", 16, true)          \
  X(Pmulld, "pmulld", 16, true)          \
  X(Pminsb, "pminsb", 16, true)          \
  X(Pminsd, "pminsd", 16, true)          \
  X(Pminuw, "pminuw", 16, true)          \
  X(Pminud, "pminud", 16, true)          \
  X(Pmaxsb, "pmaxsb", 16, true)          \
  X(Pmaxsd, "pmaxsd", 16, true)          \
  X(Pmaxuw, "pmaxuw", 16, true)          \
  X(Pmaxud, "pmaxud", 16, true)          \
  X(Pcmpeqq, "pcmpeqq", 16, true)        \
  X(Pcmpgtq, "pcmpgtq", 16, true)        \
  X(Packusdw, "packusdw", 16, true)      \
  X(Unpcklps, "unpcklps", 16, true)      \
  X(Unpckhps, "unpckhps", 16, true)      \
  X(Phminposuw, "phminposuw", 16, false) \
  X(Movsldup, "movsldup", 16, false)     \
  X(Movshdup, "movshdup", 16, false)     \
  X(Pmovsxbw, "pmovsxbw", 8, false)      \
  X(Pmovsxbd, "pmovsxbd", 4, false)      \
  X(Pmovsxbq, "pmovsxbq", 2, false)      \
  X(Pmovsxwd, "pmovsxwd", 8, false)      \
  X(Pmovsxwq, "pmovsxwq", 4, false)      \
  X(Pmovsxdq, "pmovsxdq", 8, false)      \
  X(Pmovzxbw, "pmovzxbw", 8, false)      \
  X(Pmovzxbd, "pmovzxbd", 4, false)      \
  X(Pmovzxbq, "pmovzxbq", 2, false)      \
  X(Pmovzxwd, "pmovzxwd", 8, false)      \
  X(Pmovzxwq, "pmovzxwq", 4, false)      \
  X(Pmovzxdq, "pmovzxdq", 8, false)

#define CLEW_VECTOR_INTEGER_OPS(X) \
  CLEW_VECTOR_MMX_OPS(X) CLEW_VECTOR_MMX_LOW_OPS(X) CLEW_VECTOR_XMM_OPS(X)

namespace clew::machine {

#define CLEW_DECLARE(Name, mnemonic, bytes, reads_dst) \
  void Name(Vec128& dst, const Vec128& src, VecState& state);
CLEW_VECTOR_INTEGER_OPS(CLEW_DECLARE)
namespace mmx {
CLEW_VECTOR_MMX_OPS(CLEW_DECLARE)
CLEW_VECTOR_MMX_LOW_OPS(CLEW_DECLARE)
}  // namespace mmx
#undef CLEW_DECLARE

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_INTEGER_H_
