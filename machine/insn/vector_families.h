#ifndef CLEW_MACHINE_INSN_VECTOR_FAMILIES_H_
#define CLEW_MACHINE_INSN_VECTOR_FAMILIES_H_

#include "machine/insn.h"

namespace clew::machine {

// The SSE, AVX and x87 families: declared here, called from here.
template <class D>
void RegisterSseMove(HandlerTable<D>& table);
template <class D>
void RegisterSseInteger(HandlerTable<D>& table);
template <class D>
void RegisterSseShuffle(HandlerTable<D>& table);
template <class D>
void RegisterSseFloat(HandlerTable<D>& table);
template <class D>
void RegisterSseString(HandlerTable<D>& table);
template <class D>
void RegisterSseState(HandlerTable<D>& table);
template <class D>
void RegisterAvx(HandlerTable<D>& table);
template <class D>
void RegisterGather(HandlerTable<D>& table);
template <class D>
void RegisterFused(HandlerTable<D>& table);
template <class D>
void RegisterCrypto(HandlerTable<D>& table);
template <class D>
void RegisterSaveState(HandlerTable<D>& table);
template <class D>
void RegisterOpmask(HandlerTable<D>& table);
template <class D>
void RegisterX87(HandlerTable<D>& table);
// Of encodings with EVEX.
template <class D>
void RegisterEvexMove(HandlerTable<D>& table);
template <class D>
void RegisterEvexInteger(HandlerTable<D>& table);
template <class D>
void RegisterEvexPermute(HandlerTable<D>& table);
template <class D>
void RegisterEvexFloat(HandlerTable<D>& table);
template <class D>
void RegisterEvexGather(HandlerTable<D>& table);
template <class D>
void RegisterEvexCrypto(HandlerTable<D>& table);

template <class D>
void RegisterVectorFamilies(HandlerTable<D>& table) {
  RegisterSseMove(table);
  RegisterSseInteger(table);
  RegisterSseShuffle(table);
  RegisterSseFloat(table);
  RegisterSseString(table);
  RegisterSseState(table);
  RegisterAvx(table);
  RegisterGather(table);
  RegisterFused(table);
  RegisterCrypto(table);
  RegisterSaveState(table);
  RegisterOpmask(table);
  RegisterX87(table);
}

// Those that have no writemask and 128 bits, or a scalar: what they do is what
// they do with VEX.
inline constexpr std::string_view kEvexAsVex[] = {
    "vmovd",     "vmovq",      "vmovlps",   "vmovlpd",   "vmovhps",
    "vmovhpd",   "vmovlhps",   "vmovhlps",  "vinsertps", "vextractps",
    "vpinsrb",   "vpinsrw",    "vpinsrd",   "vpinsrq",   "vpextrb",
    "vpextrw",   "vpextrd",    "vpextrq",   "vcomiss",   "vcomisd",
    "vucomiss",  "vucomisd",   "vcvtsi2ss", "vcvtsi2sd", "vcvtss2si",
    "vcvtsd2si", "vcvttss2si", "vcvttsd2si"};

// `vex` has the families above.
template <class D>
void RegisterEvexFamilies(const HandlerTable<D>& vex, HandlerTable<D>& table) {
  for (const std::string_view mnemonic : kEvexAsVex) {
    table[mnemonic] = vex.at(mnemonic);
  }
  RegisterEvexMove(table);
  RegisterEvexInteger(table);
  RegisterEvexPermute(table);
  RegisterEvexFloat(table);
  RegisterEvexGather(table);
  RegisterEvexCrypto(table);
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_INSN_VECTOR_FAMILIES_H_
