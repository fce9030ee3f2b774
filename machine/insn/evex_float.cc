// EVEX: floating point arithmetic, comparison and conversion.

#include "machine/vector/evex_float.h"

#include <algorithm>
#include <string_view>

#include "common/x86/features.h"
#include "machine/insn/evex_common.h"
#include "machine/vector/float.h"
#include "machine/vector/fused.h"

namespace clew::machine {
namespace {

// By the end of the mnemonic: ps, pd, ss, sd. A scalar form has a first source
// for its upper elements, if for nothing else.
constexpr EvexShape FloatShape(std::string_view mnemonic, uint8_t sources) {
  const bool is_scalar = mnemonic[mnemonic.size() - 2] == 's';
  return {.element = static_cast<uint8_t>(mnemonic.ends_with('s') ? 4 : 8),
          .sources = std::max<uint8_t>(sources, is_scalar ? 2 : 1),
          .is_float = true,
          .is_scalar = is_scalar};
}

// Of elements of `element` bytes from those of `from` bytes.
constexpr EvexShape ConversionShape(size_t element, size_t from,
                                    bool is_scalar = false) {
  return {.element = static_cast<uint8_t>(element),
          .sources = static_cast<uint8_t>(is_scalar ? 2 : 1),
          .source_element = static_cast<uint8_t>(from),
          .is_float = true,
          .is_scalar = is_scalar};
}

// Of VFPCLASS, which raises nothing.
constexpr EvexShape ClassShape(uint8_t element, bool is_scalar) {
  return {.element = element, .sources = 1, .is_scalar = is_scalar};
}

// What SSE has too.
//
// X(name, mnemonic, sources of a packed form)
#define CLEW_FOUR_FORMS(X, Name, mnemonic, sources) \
  X(Name##ps, mnemonic "ps", sources)               \
  X(Name##pd, mnemonic "pd", sources)               \
  X(Name##ss, mnemonic "ss", sources)               \
  X(Name##sd, mnemonic "sd", sources)
#define CLEW_ARITHMETIC(X)           \
  CLEW_FOUR_FORMS(X, Add, "vadd", 2) \
  CLEW_FOUR_FORMS(X, Sub, "vsub", 2) \
  CLEW_FOUR_FORMS(X, Mul, "vmul", 2) \
  CLEW_FOUR_FORMS(X, Div, "vdiv", 2) \
  CLEW_FOUR_FORMS(X, Min, "vmin", 2) \
  CLEW_FOUR_FORMS(X, Max, "vmax", 2) \
  CLEW_FOUR_FORMS(X, Sqrt, "vsqrt", 1)

template <class D>
void RegisterArithmetic(HandlerTable<D>& table) {
#define CLEW_IN_LANES(Name, mnemonic, sources) \
  table[mnemonic] = kEvex<D, FloatShape(mnemonic, sources), InLanes<Name>>;
  CLEW_ARITHMETIC(CLEW_IN_LANES)
#define CLEW_WIDE(Name, mnemonic, sources) \
  table[mnemonic] = kEvex<D, FloatShape(mnemonic, sources), Name>;
#define CLEW_WIDE_FORMS(Name, mnemonic, sources) \
  CLEW_FOUR_FORMS(CLEW_WIDE, Name, mnemonic, sources)
  CLEW_EVEX_FLOAT_OPS(CLEW_WIDE_FORMS)
#undef CLEW_WIDE_FORMS
#undef CLEW_WIDE
  if (x86::HostFeatures().Has(x86::Feature::kFma)) {
#define CLEW_FUSED(Name, mnemonic, bytes, vex_lanes) \
  CLEW_IN_LANES(Name, mnemonic, 3)
    CLEW_VECTOR_FUSED_OPS(CLEW_FUSED)
#undef CLEW_FUSED
  }
  if (x86::HostFeatures().Contains(
          {x86::Feature::kAvx512f, x86::Feature::kAvx512vl})) {
#define CLEW_APPROXIMATE(Name, mnemonic) \
  CLEW_FOUR_FORMS(CLEW_IN_LANES, Name, mnemonic, 1)
    CLEW_EVEX_APPROXIMATE_OPS(CLEW_APPROXIMATE)
#undef CLEW_APPROXIMATE
  }
#undef CLEW_IN_LANES
}

template <class D>
void RegisterToOpmask(HandlerTable<D>& table) {
#define CLEW_COMPARE(Name, mnemonic, U) \
  table[mnemonic] =                     \
      kEvexToOpmask<D, FloatShape(mnemonic, 2), CompareToOpmask<Name, U>>;
  CLEW_COMPARE(Vcmpps, "vcmpps", uint32_t)
  CLEW_COMPARE(Vcmppd, "vcmppd", uint64_t)
  CLEW_COMPARE(Vcmpss, "vcmpss", uint32_t)
  CLEW_COMPARE(Vcmpsd, "vcmpsd", uint64_t)
#undef CLEW_COMPARE
  table["vfpclassps"] = kEvexToOpmask<D, ClassShape(4, false), Vfpclassps>;
  table["vfpclasspd"] = kEvexToOpmask<D, ClassShape(8, false), Vfpclasspd>;
  table["vfpclassss"] = kEvexToOpmask<D, ClassShape(4, true), Vfpclassps>;
  table["vfpclasssd"] = kEvexToOpmask<D, ClassShape(8, true), Vfpclasspd>;
}

template <class D>
void RegisterElementConversions(HandlerTable<D>& table) {
#define CLEW_CONVERT(mnemonic, element, from, ...) \
  table[mnemonic] = kEvex<D, ConversionShape(element, from), __VA_ARGS__>;
  CLEW_CONVERT("vcvtdq2ps", 4, 4, InLanes<Cvtdq2ps>)
  CLEW_CONVERT("vcvtps2dq", 4, 4, InLanes<Cvtps2dq>)
  CLEW_CONVERT("vcvttps2dq", 4, 4, InLanes<Cvttps2dq>)
  CLEW_CONVERT("vcvtdq2pd", 8, 4, WidenLanes<Cvtdq2pd>)
  CLEW_CONVERT("vcvtps2pd", 8, 4, WidenLanes<Cvtps2pd>)
  CLEW_CONVERT("vcvtpd2ps", 4, 8, NarrowLanes<Cvtpd2ps>)
  CLEW_CONVERT("vcvtpd2dq", 4, 8, NarrowLanes<Cvtpd2dq>)
  CLEW_CONVERT("vcvttpd2dq", 4, 8, NarrowLanes<Cvttpd2dq>)
  if (x86::HostFeatures().Has(x86::Feature::kF16c)) {
    CLEW_CONVERT("vcvtph2ps", 4, 2, WidenLanes<Vcvtph2ps>)
    CLEW_CONVERT("vcvtps2ph", 2, 4, NarrowLanes<Vcvtps2ph>)
  }
#define CLEW_CONVERT_TYPE(Name, mnemonic, To, From, ...) \
  CLEW_CONVERT(mnemonic, sizeof(To), sizeof(From), Name)
  CLEW_EVEX_TO_INTEGER_OPS(CLEW_CONVERT_TYPE)
  CLEW_EVEX_FROM_INTEGER_OPS(CLEW_CONVERT_TYPE)
#undef CLEW_CONVERT_TYPE
#undef CLEW_CONVERT
  table["vcvtss2sd"] = kEvex<D, ConversionShape(8, 4, true), InLanes<Cvtss2sd>>;
  table["vcvtsd2ss"] = kEvex<D, ConversionShape(4, 8, true), InLanes<Cvtsd2ss>>;
}

template <class D, VecToGprOp k32, VecToGprOp k64, size_t kBytes>
constexpr Selector<D> kToUnsigned = [](const Insn& insn) -> Handler<D> {
  return insn.rex_w ? &ToGprInsn<D, k64, kBytes> : &ToGprInsn<D, k32, kBytes>;
};

template <class D, VecOp k32, VecOp k64>
constexpr Selector<D> kFromUnsigned = [](const Insn& insn) -> Handler<D> {
  return insn.rex_w ? &VecInsn<D, k64, 8, true, kVex128>
                    : &VecInsn<D, k32, 4, true, kVex128>;
};

template <class D>
void RegisterGprConversions(HandlerTable<D>& table) {
#define CLEW_TO_GPR(Name, mnemonic, Float, truncates) \
  table[mnemonic] = kToUnsigned<D, Name##32, Name##64, sizeof(Float)>;
  CLEW_EVEX_TO_GPR_OPS(CLEW_TO_GPR)
#undef CLEW_TO_GPR
#define CLEW_FROM_GPR(Name, mnemonic, Float) \
  table[mnemonic] = kFromUnsigned<D, Name##32, Name##64>;
  CLEW_EVEX_FROM_GPR_OPS(CLEW_FROM_GPR)
#undef CLEW_FROM_GPR
}

}  // namespace

template <class D>
void RegisterEvexFloat(HandlerTable<D>& table) {
  RegisterArithmetic(table);
  RegisterToOpmask(table);
  RegisterElementConversions(table);
  RegisterGprConversions(table);
}

CLEW_INSTANTIATE_FAMILY(RegisterEvexFloat);

}  // namespace clew::machine
