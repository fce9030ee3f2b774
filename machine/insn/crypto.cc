// AES, PCLMULQDQ, SHA, GFNI; VAES, VPCLMULQDQ and GFNI with EVEX.

#include "machine/vector/crypto.h"

#include "machine/insn/evex_common.h"
#include "machine/vector/gfni.h"

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
  AddVec<D>(table, "vgf2p8mulb", SelectVec<D, Gf2p8mulb, 16, true, 2>);
  AddVec<D>(table, "vgf2p8affineqb", SelectVec<D, Gf2p8affineqb, 16, true, 2>);
  AddVec<D>(table, "vgf2p8affineinvqb",
            SelectVec<D, Gf2p8affineinvqb, 16, true, 2>);
}

template <class D>
void RegisterEvexCrypto(HandlerTable<D>& table) {
  // AES and PCLMULQDQ have no writemask.
  constexpr EvexShape kTwoSources = {.element = 8,
                                     .memory = MaskedMemory::kWhole};
  table["vaesenc"] = kEvex<D, kTwoSources, InLanes<Aesenc>>;
  table["vaesenclast"] = kEvex<D, kTwoSources, InLanes<Aesenclast>>;
  table["vaesdec"] = kEvex<D, kTwoSources, InLanes<Aesdec>>;
  table["vaesdeclast"] = kEvex<D, kTwoSources, InLanes<Aesdeclast>>;
  table["vpclmulqdq"] = kEvex<D, kTwoSources, InLanes<Pclmulqdq>>;
  table["vgf2p8mulb"] = kEvex<D, EvexShape{.element = 1}, InLanes<Gf2p8mulb>>;
  // Their memory is of quadwords, which may be broadcast.
  table["vgf2p8affineqb"] =
      SelectNarrow<D, uint8_t, uint64_t, InLanes<Gf2p8affineqb>>;
  table["vgf2p8affineinvqb"] =
      SelectNarrow<D, uint8_t, uint64_t, InLanes<Gf2p8affineinvqb>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterCrypto);
CLEW_INSTANTIATE_FAMILY(RegisterEvexCrypto);

}  // namespace clew::machine
