#ifndef CLEW_MACHINE_VECTOR_INTEGER_H_
#define CLEW_MACHINE_VECTOR_INTEGER_H_

#include "machine/vector/vec_op.h"

// Integer and bit operations of SSE2 to SSE4.2 on whole registers, without an
// immediate byte. Each is named after its mnemonic and is what the Intel SDM
// vol. 2 says of the xmm, xmm form. None reads or writes MXCSR.
#define CLEW_VECTOR_INTEGER_OPS(X) \
  X(Paddb, "paddb")                \
  X(Paddw, "paddw")                \
  X(Paddd, "paddd")                \
  X(Paddq, "paddq")                \
  X(Psubb, "psubb")                \
  X(Psubw, "psubw")                \
  X(Psubd, "psubd")                \
  X(Psubq, "psubq")                \
  X(Paddsb, "paddsb")              \
  X(Paddsw, "paddsw")              \
  X(Paddusb, "paddusb")            \
  X(Paddusw, "paddusw")            \
  X(Psubsb, "psubsb")              \
  X(Psubsw, "psubsw")              \
  X(Psubusb, "psubusb")            \
  X(Psubusw, "psubusw")            \
  X(Pmullw, "pmullw")              \
  X(Pmulhw, "pmulhw")              \
  X(Pmulhuw, "pmulhuw")            \
  X(Pmuludq, "pmuludq")            \
  X(Pmuldq, "pmuldq")              \
  X(Pmulld, "pmulld")              \
  X(Pmulhrsw, "pmulhrsw")          \
  X(Pmaddwd, "pmaddwd")            \
  X(Pmaddubsw, "pmaddubsw")        \
  X(Psadbw, "psadbw")              \
  X(Phminposuw, "phminposuw")      \
  X(Pavgb, "pavgb")                \
  X(Pavgw, "pavgw")                \
  X(Pminub, "pminub")              \
  X(Pminsw, "pminsw")              \
  X(Pmaxub, "pmaxub")              \
  X(Pmaxsw, "pmaxsw")              \
  X(Pminsb, "pminsb")              \
  X(Pminsd, "pminsd")              \
  X(Pminuw, "pminuw")              \
  X(Pminud, "pminud")              \
  X(Pmaxsb, "pmaxsb")              \
  X(Pmaxsd, "pmaxsd")              \
  X(Pmaxuw, "pmaxuw")              \
  X(Pmaxud, "pmaxud")              \
  X(Pcmpeqb, "pcmpeqb")            \
  X(Pcmpeqw, "pcmpeqw")            \
  X(Pcmpeqd, "pcmpeqd")            \
  X(Pcmpeqq, "pcmpeqq")            \
  X(Pcmpgtb, "pcmpgtb")            \
  X(Pcmpgtw, "pcmpgtw")            \
  X(Pcmpgtd, "pcmpgtd")            \
  X(Pcmpgtq, "pcmpgtq")            \
  X(Pand, "pand")                  \
  X(Pandn, "pandn")                \
  X(Por, "por")                    \
  X(Pxor, "pxor")                  \
  X(Psllw, "psllw")                \
  X(Pslld, "pslld")                \
  X(Psllq, "psllq")                \
  X(Psrlw, "psrlw")                \
  X(Psrld, "psrld")                \
  X(Psrlq, "psrlq")                \
  X(Psraw, "psraw")                \
  X(Psrad, "psrad")                \
  X(Packsswb, "packsswb")          \
  X(Packssdw, "packssdw")          \
  X(Packuswb, "packuswb")          \
  X(Packusdw, "packusdw")          \
  X(Punpcklbw, "punpcklbw")        \
  X(Punpcklwd, "punpcklwd")        \
  X(Punpckldq, "punpckldq")        \
  X(Punpcklqdq, "punpcklqdq")      \
  X(Punpckhbw, "punpckhbw")        \
  X(Punpckhwd, "punpckhwd")        \
  X(Punpckhdq, "punpckhdq")        \
  X(Punpckhqdq, "punpckhqdq")      \
  X(Pshufb, "pshufb")              \
  X(Phaddw, "phaddw")              \
  X(Phaddd, "phaddd")              \
  X(Phaddsw, "phaddsw")            \
  X(Phsubw, "phsubw")              \
  X(Phsubd, "phsubd")              \
  X(Phsubsw, "phsubsw")            \
  X(Psignb, "psignb")              \
  X(Psignw, "psignw")              \
  X(Psignd, "psignd")              \
  X(Pabsb, "pabsb")                \
  X(Pabsw, "pabsw")                \
  X(Pabsd, "pabsd")                \
  X(Pmovsxbw, "pmovsxbw")          \
  X(Pmovsxbd, "pmovsxbd")          \
  X(Pmovsxbq, "pmovsxbq")          \
  X(Pmovsxwd, "pmovsxwd")          \
  X(Pmovsxwq, "pmovsxwq")          \
  X(Pmovsxdq, "pmovsxdq")          \
  X(Pmovzxbw, "pmovzxbw")          \
  X(Pmovzxbd, "pmovzxbd")          \
  X(Pmovzxbq, "pmovzxbq")          \
  X(Pmovzxwd, "pmovzxwd")          \
  X(Pmovzxwq, "pmovzxwq")          \
  X(Pmovzxdq, "pmovzxdq")          \
  X(Unpcklps, "unpcklps")          \
  X(Unpckhps, "unpckhps")          \
  X(Unpcklpd, "unpcklpd")          \
  X(Unpckhpd, "unpckhpd")          \
  X(Movddup, "movddup")            \
  X(Movsldup, "movsldup")          \
  X(Movshdup, "movshdup")          \
  X(Movhlps, "movhlps")            \
  X(Movlhps, "movlhps")

namespace clew::machine {

#define CLEW_DECLARE(Name, mnemonic) \
  void Name(Vec128& dst, const Vec128& src, VecState& state);
CLEW_VECTOR_INTEGER_OPS(CLEW_DECLARE)
#undef CLEW_DECLARE

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_INTEGER_H_
