#ifndef CLEW_MACHINE_VECTOR_CRYPTO_H_
#define CLEW_MACHINE_VECTOR_CRYPTO_H_

#include "machine/vector/vec_op.h"

// AES, PCLMULQDQ and SHA, named after their mnemonics (Intel SDM vol. 2). Each
// is the host's instruction: x86::kByHost of common/x86/features.h has them.
// None reads or writes MXCSR.
//
// X(name, mnemonic, bytes of a memory source, whether dst is read, lanes of its
//   VEX forms), as in machine/vector/integer.h
#define CLEW_VECTOR_CRYPTO_OPS(X)          \
  X(Aesenc, "aesenc", 16, true, 2)         \
  X(Aesenclast, "aesenclast", 16, true, 2) \
  X(Aesdec, "aesdec", 16, true, 2)         \
  X(Aesdeclast, "aesdeclast", 16, true, 2) \
  X(Aesimc, "aesimc", 16, false, 1)        \
  X(Sha1nexte, "sha1nexte", 16, true, 0)   \
  X(Sha1msg1, "sha1msg1", 16, true, 0)     \
  X(Sha1msg2, "sha1msg2", 16, true, 0)     \
  X(Sha256msg1, "sha256msg1", 16, true, 0) \
  X(Sha256msg2, "sha256msg2", 16, true, 0)

// With an immediate byte.
#define CLEW_VECTOR_CRYPTO_IMM_OPS(X)                 \
  X(Aeskeygenassist, "aeskeygenassist", 16, false, 1) \
  X(Pclmulqdq, "pclmulqdq", 16, true, 2)              \
  X(Sha1rnds4, "sha1rnds4", 16, true, 0)

namespace clew::machine {

#define CLEW_DECLARE(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  void Name(Vec128& dst, const Vec128& src, VecState& state);
CLEW_VECTOR_CRYPTO_OPS(CLEW_DECLARE)
CLEW_VECTOR_CRYPTO_IMM_OPS(CLEW_DECLARE)
#undef CLEW_DECLARE

// state.third is XMM0.
void Sha256rnds2(Vec128& dst, const Vec128& src, VecState& state);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_CRYPTO_H_
