// EVEX: what moves elements to other places, or changes their size: shuffles,
// permutations, broadcasts, parts of a register, narrowing and widening,
// compress and expand; blends.

#include "machine/vector/evex_permute.h"

#include "machine/insn/evex_common.h"
#include "machine/vector/evex_integer.h"
#include "machine/vector/integer.h"
#include "machine/vector/permute.h"
#include "machine/vector/shuffle.h"

namespace clew::machine {
namespace {

// The low kBytes of src, again and again.
template <unsigned kBytes>
void Repeat(Wide& dst, const Wide& src, WideState&) {
  dst = src;
  RepeatFirst(dst, kBytes);
}

// From a general register.
template <class D, class U>
void BroadcastGpr(Cpu<D>& cpu, const Insn& insn) {
  constexpr EvexShape kShape = {.element = sizeof(U), .sources = 1};
  EvexOperands read;
  read.count = ElementCount(insn, kShape);
  read.selected = SelectedOf(cpu, insn, read.count);
  read.state = WideStateFor(cpu, insn, kShape, read.selected);
  Wide value = {};
  value[0].q[0] = cpu.d().Concretise(cpu.template GetReg<U>(insn.op[1].reg));
  RepeatFirst(value, sizeof(U));
  WriteSelected(cpu, insn, kShape, read, value);
}

// VPBROADCASTB and its kin.
template <class D, class U>
Handler<D> SelectBroadcast(const Insn& insn) {
  constexpr EvexShape kShape = {
      .element = sizeof(U), .sources = 1, .memory_bytes = sizeof(U)};
  return insn.op[1].is_reg() ? &BroadcastGpr<D, U>
                             : &EvexInsn<D, kShape, Repeat<sizeof(U)>>;
}

// VMOVDDUP: of memory 128 bits have the low half alone.
template <class D>
Handler<D> SelectWideMovddup(const Insn& insn) {
  constexpr EvexShape kWide = {
      .element = 8, .sources = 1, .memory = MaskedMemory::kWhole};
  constexpr EvexShape kNarrow = {.element = 8,
                                 .sources = 1,
                                 .memory = MaskedMemory::kWhole,
                                 .memory_bytes = 8};
  return LanesOf(insn) == 1 ? &EvexInsn<D, kNarrow, InLanes<Vmovddup>>
                            : &EvexInsn<D, kWide, InLanes<Vmovddup>>;
}

// By an immediate, or by an element for each.
template <class D, uint8_t kElement, WideOp kByVec, WideOp kByImm>
Handler<D> SelectWidePermute(const Insn& insn) {
  constexpr EvexShape kOfVec = {.element = kElement,
                                .memory = MaskedMemory::kWhole};
  constexpr EvexShape kOfImm = {
      .element = kElement, .sources = 1, .memory = MaskedMemory::kWhole};
  return insn.op[2].is_imm() ? &EvexInsn<D, kOfImm, kByImm>
                             : &EvexInsn<D, kOfVec, kByVec>;
}

// VEXTRACTF32X4 and its kin. Memory is written where it is selected, but all of
// it has to be such that it could be.
template <class D, uint8_t kElement, unsigned kLanes>
void ExtractPart(Cpu<D>& cpu, const Insn& insn) {
  constexpr uint8_t kBytes = kLanes * kLaneBytes;
  constexpr EvexShape kShape = {
      .element = kElement, .sources = 1, .result_bytes = kBytes};
  if (insn.op[0].is_mem() && !cpu.CheckStore(cpu.Address(insn), kBytes)) {
    return;
  }
  RunEvex(cpu, insn, kShape, &Vextract<kLanes>);
}

// X(mnemonic, bytes of an element, sources, access to memory, operation)
//
// Of class E4NF or E5NF is kWhole. Source of classes: Intel SDM vol. 2, "Other
// Exceptions" of each.
#define CLEW_EVEX_PERMUTES(X)                             \
  X("vpunpcklbw", 1, 2, kWhole, InLanes<Punpcklbw>)       \
  X("vpunpcklwd", 2, 2, kWhole, InLanes<Punpcklwd>)       \
  X("vpunpckldq", 4, 2, kWhole, InLanes<Punpckldq>)       \
  X("vpunpcklqdq", 8, 2, kWhole, InLanes<Vpunpcklqdq>)    \
  X("vpunpckhbw", 1, 2, kWhole, InLanes<Punpckhbw>)       \
  X("vpunpckhwd", 2, 2, kWhole, InLanes<Punpckhwd>)       \
  X("vpunpckhdq", 4, 2, kWhole, InLanes<Punpckhdq>)       \
  X("vpunpckhqdq", 8, 2, kWhole, InLanes<Vpunpckhqdq>)    \
  X("vunpcklps", 4, 2, kWhole, InLanes<Unpcklps>)         \
  X("vunpcklpd", 8, 2, kWhole, InLanes<Vpunpcklqdq>)      \
  X("vunpckhps", 4, 2, kWhole, InLanes<Unpckhps>)         \
  X("vunpckhpd", 8, 2, kWhole, InLanes<Vpunpckhqdq>)      \
  X("vpshufb", 1, 2, kWhole, InLanes<Pshufb>)             \
  X("vpshufd", 4, 1, kWhole, InLanes<Pshufd>)             \
  X("vpshuflw", 2, 1, kWhole, InLanes<Pshuflw>)           \
  X("vpshufhw", 2, 1, kWhole, InLanes<Pshufhw>)           \
  X("vshufps", 4, 2, kWhole, InLanes<Shufps>)             \
  X("vshufpd", 8, 2, kWhole, InLanes<Shufpd, 2>)          \
  X("vmovsldup", 4, 1, kWhole, InLanes<Movsldup>)         \
  X("vmovshdup", 4, 1, kWhole, InLanes<Movshdup>)         \
  X("vpalignr", 1, 2, kWhole, InLanes<Palignr>)           \
  X("valignd", 4, 2, kWhole, Valign<uint32_t>)            \
  X("valignq", 8, 2, kWhole, Valign<uint64_t>)            \
  X("vpermb", 1, 2, kWhole, Vperm<uint8_t>)               \
  X("vpermw", 2, 2, kWhole, Vperm<uint16_t>)              \
  X("vpermd", 4, 2, kWhole, Vperm<uint32_t>)              \
  X("vpermps", 4, 2, kWhole, Vperm<uint32_t>)             \
  X("vpermi2b", 1, 3, kWhole, Vpermi2<uint8_t>)           \
  X("vpermi2w", 2, 3, kWhole, Vpermi2<uint16_t>)          \
  X("vpermi2d", 4, 3, kWhole, Vpermi2<uint32_t>)          \
  X("vpermi2q", 8, 3, kWhole, Vpermi2<uint64_t>)          \
  X("vpermi2ps", 4, 3, kWhole, Vpermi2<uint32_t>)         \
  X("vpermi2pd", 8, 3, kWhole, Vpermi2<uint64_t>)         \
  X("vpermt2b", 1, 3, kWhole, Vpermt2<uint8_t>)           \
  X("vpermt2w", 2, 3, kWhole, Vpermt2<uint16_t>)          \
  X("vpermt2d", 4, 3, kWhole, Vpermt2<uint32_t>)          \
  X("vpermt2q", 8, 3, kWhole, Vpermt2<uint64_t>)          \
  X("vpermt2ps", 4, 3, kWhole, Vpermt2<uint32_t>)         \
  X("vpermt2pd", 8, 3, kWhole, Vpermt2<uint64_t>)         \
  X("vshuff32x4", 4, 2, kWhole, Vshuff32x4)               \
  X("vshufi32x4", 4, 2, kWhole, Vshuff32x4)               \
  X("vshuff64x2", 8, 2, kWhole, Vshuff32x4)               \
  X("vshufi64x2", 8, 2, kWhole, Vshuff32x4)               \
  X("vpconflictd", 4, 1, kWhole, Vpconflict<uint32_t>)    \
  X("vpconflictq", 8, 1, kWhole, Vpconflict<uint64_t>)    \
  X("vpcompressb", 1, 1, kElements, Vpcompress<uint8_t>)  \
  X("vpcompressw", 2, 1, kElements, Vpcompress<uint16_t>) \
  X("vpcompressd", 4, 1, kElements, Vpcompress<uint32_t>) \
  X("vpcompressq", 8, 1, kElements, Vpcompress<uint64_t>) \
  X("vcompressps", 4, 1, kElements, Vpcompress<uint32_t>) \
  X("vcompresspd", 8, 1, kElements, Vpcompress<uint64_t>) \
  X("vpexpandb", 1, 1, kPacked, Vpexpand<uint8_t>)        \
  X("vpexpandw", 2, 1, kPacked, Vpexpand<uint16_t>)       \
  X("vpexpandd", 4, 1, kPacked, Vpexpand<uint32_t>)       \
  X("vpexpandq", 8, 1, kPacked, Vpexpand<uint64_t>)       \
  X("vexpandps", 4, 1, kPacked, Vpexpand<uint32_t>)       \
  X("vexpandpd", 8, 1, kPacked, Vpexpand<uint64_t>)

// X(mnemonic, bytes of an element)
#define CLEW_EVEX_BLENDS(X) \
  X("vpblendmb", 1)         \
  X("vpblendmw", 2)         \
  X("vpblendmd", 4)         \
  X("vpblendmq", 8)         \
  X("vblendmps", 4)         \
  X("vblendmpd", 8)

// X(mnemonic, bytes of an element, bytes that are repeated)
#define CLEW_EVEX_BROADCASTS(X) \
  X("vbroadcastss", 4, 4)       \
  X("vbroadcastsd", 8, 8)       \
  X("vbroadcastf32x2", 4, 8)    \
  X("vbroadcasti32x2", 4, 8)    \
  X("vbroadcastf32x4", 4, 16)   \
  X("vbroadcasti32x4", 4, 16)   \
  X("vbroadcastf64x2", 8, 16)   \
  X("vbroadcasti64x2", 8, 16)   \
  X("vbroadcastf32x8", 4, 32)   \
  X("vbroadcasti32x8", 4, 32)   \
  X("vbroadcastf64x4", 8, 32)   \
  X("vbroadcasti64x4", 8, 32)

// X(what comes behind vinsert and vextract, bytes of an element, lanes)
#define CLEW_EVEX_PARTS(X) \
  X("f32x4", 4, 1)         \
  X("i32x4", 4, 1)         \
  X("f64x2", 8, 1)         \
  X("i64x2", 8, 1)         \
  X("f32x8", 4, 2)         \
  X("i32x8", 4, 2)         \
  X("f64x4", 8, 2)         \
  X("i64x4", 8, 2)

template <class D>
void RegisterPermutes(HandlerTable<D>& table) {
#define CLEW_REGISTER(mnemonic, bytes, source_count, access, ...)    \
  table[mnemonic] = kEvex<D,                                         \
                          EvexShape{.element = bytes,                \
                                    .sources = source_count,         \
                                    .memory = MaskedMemory::access}, \
                          __VA_ARGS__>;
  CLEW_EVEX_PERMUTES(CLEW_REGISTER)
#undef CLEW_REGISTER
  table["vpermilps"] =
      SelectWidePermute<D, 4, InLanes<Vpermilps>, InLanes<Pshufd>>;
  table["vpermilpd"] =
      SelectWidePermute<D, 8, InLanes<Vpermilpd>, InLanes<VpermilpdImm, 2>>;
  for (const char* mnemonic : {"vpermq", "vpermpd"}) {
    table[mnemonic] = SelectWidePermute<D, 8, Vperm<uint64_t>, VpermqImm>;
  }
  table["vmovddup"] = SelectWideMovddup<D>;
}

template <class D>
void RegisterResizing(HandlerTable<D>& table) {
#define CLEW_REGISTER(mnemonic, Operation, To, From)                 \
  table[mnemonic] = kEvex<D,                                         \
                          EvexShape{.element = sizeof(To),           \
                                    .sources = 1,                    \
                                    .source_element = sizeof(From)}, \
                          Operation<To, From>>;
  CLEW_EVEX_CONVERSIONS(CLEW_REGISTER)
#undef CLEW_REGISTER
  table["vpacksswb"] = SelectNarrow<D, int8_t, int16_t, InLanes<Packsswb>>;
  table["vpackuswb"] = SelectNarrow<D, uint8_t, int16_t, InLanes<Packuswb>>;
  table["vpackssdw"] = SelectNarrow<D, int16_t, int32_t, InLanes<Packssdw>>;
  table["vpackusdw"] = SelectNarrow<D, uint16_t, int32_t, InLanes<Packusdw>>;
  table["vpmultishiftqb"] = SelectNarrow<D, uint8_t, uint64_t, Vpmultishiftqb>;
}

template <class D>
void RegisterParts(HandlerTable<D>& table) {
#define CLEW_REGISTER(part, bytes, lane_count)                    \
  table["vinsert" part] =                                         \
      kEvex<D,                                                    \
            EvexShape{.element = bytes,                           \
                      .memory = MaskedMemory::kWhole,             \
                      .memory_bytes = (lane_count) * kLaneBytes}, \
            Vinsert<lane_count>>;                                 \
  table["vextract" part] = Always<D, &ExtractPart<D, bytes, lane_count>>;
  CLEW_EVEX_PARTS(CLEW_REGISTER)
#undef CLEW_REGISTER
#define CLEW_REGISTER(mnemonic, bytes, repeated)                              \
  table[mnemonic] = kEvex<                                                    \
      D, EvexShape{.element = bytes, .sources = 1, .memory_bytes = repeated}, \
      Repeat<repeated>>;
  CLEW_EVEX_BROADCASTS(CLEW_REGISTER)
#undef CLEW_REGISTER
  table["vpbroadcastb"] = SelectBroadcast<D, uint8_t>;
  table["vpbroadcastw"] = SelectBroadcast<D, uint16_t>;
  table["vpbroadcastd"] = SelectBroadcast<D, uint32_t>;
  table["vpbroadcastq"] = SelectBroadcast<D, uint64_t>;
}

}  // namespace

template <class D>
void RegisterEvexPermute(HandlerTable<D>& table) {
  RegisterPermutes(table);
  RegisterResizing(table);
  RegisterParts(table);
#define CLEW_REGISTER(mnemonic, bytes) \
  table[mnemonic] =                    \
      kEvex<D, EvexShape{.element = bytes, .merges_first = true}, Copy>;
  CLEW_EVEX_BLENDS(CLEW_REGISTER)
#undef CLEW_REGISTER
}

CLEW_INSTANTIATE_FAMILY(RegisterEvexPermute);

}  // namespace clew::machine
