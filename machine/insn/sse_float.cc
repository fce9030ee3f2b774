// Floating point arithmetic, comparison and conversion on XMM registers;
// conversion from and to MMX registers.

#include "machine/insn/sse_common.h"
#include "machine/vector/float.h"

namespace clew::machine {
namespace {

// The general register or memory is 8 bytes wide with REX.W, 4 without.
template <class D, VecOp k32, VecOp k64>
Handler<D> SelectFromInteger(const Insn& insn) {
  return insn.rex_w ? &VecInsn<D, k64, 8, true> : &VecInsn<D, k32, 4, true>;
}

template <class D, VecToGprOp k32, VecToGprOp k64, unsigned kBytes>
Handler<D> SelectToInteger(const Insn& insn) {
  return insn.rex_w ? &ToGprInsn<D, k64, kBytes> : &ToGprInsn<D, k32, kBytes>;
}

template <class D>
void RegisterConversions(HandlerTable<D>& table) {
  table["cvtsi2ss"] = SelectFromInteger<D, Cvtsi2ss32, Cvtsi2ss64>;
  table["cvtsi2sd"] = SelectFromInteger<D, Cvtsi2sd32, Cvtsi2sd64>;
  table["cvtss2si"] = SelectToInteger<D, Cvtss2si32, Cvtss2si64, 4>;
  table["cvtsd2si"] = SelectToInteger<D, Cvtsd2si32, Cvtsd2si64, 8>;
  table["cvttss2si"] = SelectToInteger<D, Cvttss2si32, Cvttss2si64, 4>;
  table["cvttsd2si"] = SelectToInteger<D, Cvttsd2si32, Cvttsd2si64, 8>;
}

// CVTPI2PS and CVTPI2PD from memory have no MMX register and leave the x87
// state alone.
template <class D, VecOp kOp, bool kReadsDst>
Handler<D> SelectFromMmx(const Insn& insn) {
  constexpr Handler<D> kConvert = &VecInsn<D, kOp, 8, kReadsDst>;
  return HasMmx(insn) ? &MmxInsn<D, kConvert> : kConvert;
}

template <class D>
void RegisterMmxConversions(HandlerTable<D>& table) {
  table["cvtpi2ps"] = SelectFromMmx<D, mmx::Cvtpi2ps, true>;
  table["cvtps2pi"] = SelectMmx<D, &VecInsn<D, mmx::Cvtps2pi, 8, false>>;
  table["cvttps2pi"] = SelectMmx<D, &VecInsn<D, mmx::Cvttps2pi, 8, false>>;
  table["cvtpi2pd"] = SelectFromMmx<D, mmx::Cvtpi2pd, false>;
  table["cvtpd2pi"] = SelectAlwaysMmx<D, &VecInsn<D, mmx::Cvtpd2pi, 16, false>>;
  table["cvttpd2pi"] =
      SelectAlwaysMmx<D, &VecInsn<D, mmx::Cvttpd2pi, 16, false>>;
}

// CMPPS and its kin, under each name that the decoder has for the eight
// predicates. The immediate is in Insn::imm either way.
template <class D>
void RegisterComparisons(HandlerTable<D>& table) {
#define CLEW_REGISTER(predicate)                               \
  table["cmp" predicate "ps"] = SelectVec<D, Cmpps, 16, true>; \
  table["cmp" predicate "pd"] = SelectVec<D, Cmppd, 16, true>; \
  table["cmp" predicate "ss"] = SelectVec<D, Cmpss, 4, true>;  \
  table["cmp" predicate "sd"] = SelectVec<D, Cmpsd, 8, true>;
  CLEW_REGISTER("eq")
  CLEW_REGISTER("lt")
  CLEW_REGISTER("le")
  CLEW_REGISTER("unord")
  CLEW_REGISTER("neq")
  CLEW_REGISTER("nlt")
  CLEW_REGISTER("nle")
  CLEW_REGISTER("ord")
#undef CLEW_REGISTER
  table["ucomiss"] = SelectSse<D, &ToFlagsInsn<D, Ucomiss, 4>>;
  table["ucomisd"] = SelectSse<D, &ToFlagsInsn<D, Ucomisd, 8>>;
  table["comiss"] = SelectSse<D, &ToFlagsInsn<D, Comiss, 4>>;
  table["comisd"] = SelectSse<D, &ToFlagsInsn<D, Comisd, 8>>;
}

}  // namespace

template <class D>
void RegisterSseFloat(HandlerTable<D>& table) {
#define CLEW_REGISTER(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  AddVec<D>(table, mnemonic, "v" mnemonic,                         \
            SelectVec<D, Name, bytes, reads_dst, vex_lanes>);
  CLEW_VECTOR_FLOAT_OPS(CLEW_REGISTER)
  CLEW_VECTOR_APPROXIMATE_OPS(CLEW_REGISTER)
  CLEW_VECTOR_FLOAT_IMM_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
  RegisterConversions(table);
  RegisterMmxConversions(table);
  RegisterComparisons(table);
}

CLEW_INSTANTIATE_FAMILY(RegisterSseFloat);

}  // namespace clew::machine
