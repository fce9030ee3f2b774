#include "machine/vector/crypto.h"

#include "machine/vector/host_op.h"

namespace clew::machine {

CLEW_VECTOR_CRYPTO_OPS(CLEW_HOST_INTEGER_OP)

namespace {

// `mnemonic src, dst` with an immediate.
#define CLEW_HOST_IMM_OP(Name, mnemonic)              \
  template <int kImm>                                 \
  void Name(Vec128& dst, const Vec128& src) {         \
    __m128i d = ToHost(dst);                          \
    __asm__(mnemonic " %[imm], %[s], %[d]"            \
            : [d] "+x"(d)                             \
            : [s] "x"(ToHost(src)), [imm] "i"(kImm)); \
    FromHost(d, dst);                                 \
  }

CLEW_HOST_IMM_OP(KeygenWith, "aeskeygenassist")
CLEW_HOST_IMM_OP(MultiplyHalves, "pclmulqdq")
CLEW_HOST_IMM_OP(FourRounds, "sha1rnds4")

}  // namespace

// The round constant is added (XOR) to the upper double-word of either half.
void Aeskeygenassist(Vec128& dst, const Vec128& src, VecState& state) {
  KeygenWith<0>(dst, src);
  for (uint64_t& half : dst.q) {
    half ^= uint64_t{state.imm} << 32;
  }
}

// Bits 0 and 4 choose the halves of the operands.
void Pclmulqdq(Vec128& dst, const Vec128& src, VecState& state) {
  switch (state.imm & 0x11) {
    case 0x00:
      return MultiplyHalves<0x00>(dst, src);
    case 0x01:
      return MultiplyHalves<0x01>(dst, src);
    case 0x10:
      return MultiplyHalves<0x10>(dst, src);
    default:
      return MultiplyHalves<0x11>(dst, src);
  }
}

// Bits 1:0 choose the function and the constant of the rounds.
void Sha1rnds4(Vec128& dst, const Vec128& src, VecState& state) {
  switch (state.imm & 3) {
    case 0:
      return FourRounds<0>(dst, src);
    case 1:
      return FourRounds<1>(dst, src);
    case 2:
      return FourRounds<2>(dst, src);
    default:
      return FourRounds<3>(dst, src);
  }
}

void Sha256rnds2(Vec128& dst, const Vec128& src, VecState& state) {
  __m128i d = ToHost(dst);
  __asm__("sha256rnds2 %%xmm0, %[s], %[d]"
          : [d] "+x"(d)
          : [s] "x"(ToHost(src)), "Yz"(ToHost(state.third)));
  FromHost(d, dst);
}

}  // namespace clew::machine
