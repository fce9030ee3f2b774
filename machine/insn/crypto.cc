// AES, PCLMULQDQ, SHA.

#include "machine/vector/crypto.h"

#include "machine/insn/sse_common.h"

namespace clew::machine {
namespace {

template <class D>
void Sha256Rounds(Cpu<D>& cpu, const Insn& insn) {
  const Vec128 src = cpu.ReadVec(insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  Vec128 dst = cpu.ReadVec(insn, insn.op[0]);
  VecState state = StateFor(cpu, insn);
  state.third = cpu.ReadVec(insn, kXmm0);
  Sha256rnds2(dst, src, state);
  cpu.WriteVec(insn, insn.op[0], dst);
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
