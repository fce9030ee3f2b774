// AES, PCLMULQDQ, SHA.

#include "machine/vector/crypto.h"

#include "machine/insn/sse_common.h"

namespace clew::machine {
namespace {

template <class D>
void Sha256Rounds(Cpu<D>& cpu, const Insn& insn) {
  ThreeSources<Sha256rnds2, kLaneBytes, kSse>(cpu, insn, insn.op[0], insn.op[1],
                                              kXmm0);
}

}  // namespace

template <class D>
void RegisterCrypto(HandlerTable<D>& table) {
#define CLEW_REGISTER(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  AddVec<D>(table, "v" mnemonic,                                   \
            SelectVec<D, Name, bytes, reads_dst, vex_lanes>);
  CLEW_VECTOR_CRYPTO_OPS(CLEW_REGISTER)
  CLEW_VECTOR_CRYPTO_IMM_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
  table["sha256rnds2"] = SelectSse<D, &Sha256Rounds<D>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterCrypto);

}  // namespace clew::machine
