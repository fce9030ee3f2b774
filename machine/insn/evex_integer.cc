// EVEX: integer arithmetic, shifts and rotations, comparisons to an opmask
// register.

#include "machine/vector/evex_integer.h"

#include "machine/insn/evex_common.h"
#include "machine/vector/evex_compare.h"
#include "machine/vector/integer.h"
#include "machine/vector/permute.h"
#include "machine/vector/shuffle.h"

namespace clew::machine {
namespace {

// An operation on dst, of an instruction that has one source.
template <VecOp kOp>
void OnSource(Wide& dst, const Wide& src, WideState& state) {
  dst = src;
  InLanes<kOp>(dst, src, state);
}

// The count is the low lane of src, for all lanes.
template <VecOp kOp>
void ByOneCount(Wide& dst, const Wide& src, WideState& state) {
  Wide counts;
  counts.fill(src[0]);
  InLanes<kOp>(dst, counts, state);
}

// By an xmm register or as much memory, or by an immediate.
template <class D, uint8_t kElement, VecOp kByVec, VecOp kByImm>
Handler<D> SelectWideShift(const Insn& insn) {
  constexpr EvexShape kOfImm = {.element = kElement, .sources = 1};
  constexpr EvexShape kOfVec = {.element = kElement,
                                .memory = MaskedMemory::kWhole,
                                .memory_bytes = kLaneBytes};
  return insn.op[2].is_imm() ? &EvexInsn<D, kOfImm, OnSource<kByImm>>
                             : &EvexInsn<D, kOfVec, ByOneCount<kByVec>>;
}

template <class D, VecOp kOp>
constexpr Selector<D> kWideByteShift =
    kEvex<D,
          EvexShape{.element = 1, .sources = 1, .memory = MaskedMemory::kWhole},
          OnSource<kOp>>;

// X(mnemonic, bytes of an element, sources, access to memory, operation in each
//   lane)
//
// Of class E4NF is kWhole. Source of classes: Intel SDM vol. 2, "Other
// Exceptions" of each.
#define CLEW_EVEX_LANE_OPS(X)               \
  X("vpaddb", 1, 2, kElements, Paddb)       \
  X("vpaddw", 2, 2, kElements, Paddw)       \
  X("vpaddd", 4, 2, kElements, Paddd)       \
  X("vpaddq", 8, 2, kElements, Paddq)       \
  X("vpsubb", 1, 2, kElements, Psubb)       \
  X("vpsubw", 2, 2, kElements, Psubw)       \
  X("vpsubd", 4, 2, kElements, Psubd)       \
  X("vpsubq", 8, 2, kElements, Psubq)       \
  X("vpaddsb", 1, 2, kElements, Paddsb)     \
  X("vpaddsw", 2, 2, kElements, Paddsw)     \
  X("vpaddusb", 1, 2, kElements, Paddusb)   \
  X("vpaddusw", 2, 2, kElements, Paddusw)   \
  X("vpsubsb", 1, 2, kElements, Psubsb)     \
  X("vpsubsw", 2, 2, kElements, Psubsw)     \
  X("vpsubusb", 1, 2, kElements, Psubusb)   \
  X("vpsubusw", 2, 2, kElements, Psubusw)   \
  X("vpavgb", 1, 2, kElements, Pavgb)       \
  X("vpavgw", 2, 2, kElements, Pavgw)       \
  X("vpminsb", 1, 2, kElements, Pminsb)     \
  X("vpminsw", 2, 2, kElements, Pminsw)     \
  X("vpminsd", 4, 2, kElements, Pminsd)     \
  X("vpminub", 1, 2, kElements, Pminub)     \
  X("vpminuw", 2, 2, kElements, Pminuw)     \
  X("vpminud", 4, 2, kElements, Pminud)     \
  X("vpmaxsb", 1, 2, kElements, Pmaxsb)     \
  X("vpmaxsw", 2, 2, kElements, Pmaxsw)     \
  X("vpmaxsd", 4, 2, kElements, Pmaxsd)     \
  X("vpmaxub", 1, 2, kElements, Pmaxub)     \
  X("vpmaxuw", 2, 2, kElements, Pmaxuw)     \
  X("vpmaxud", 4, 2, kElements, Pmaxud)     \
  X("vpabsb", 1, 1, kElements, Pabsb)       \
  X("vpabsw", 2, 1, kElements, Pabsw)       \
  X("vpabsd", 4, 1, kElements, Pabsd)       \
  X("vpmullw", 2, 2, kElements, Pmullw)     \
  X("vpmulhw", 2, 2, kElements, Pmulhw)     \
  X("vpmulhuw", 2, 2, kElements, Pmulhuw)   \
  X("vpmulhrsw", 2, 2, kElements, Pmulhrsw) \
  X("vpmulld", 4, 2, kElements, Pmulld)     \
  X("vpmuldq", 8, 2, kElements, Pmuldq)     \
  X("vpmuludq", 8, 2, kElements, Pmuludq)   \
  X("vpmaddwd", 4, 2, kWhole, Pmaddwd)      \
  X("vpmaddubsw", 2, 2, kWhole, Pmaddubsw)  \
  X("vpsadbw", 8, 2, kWhole, Psadbw)        \
  X("vdbpsadbw", 2, 2, kWhole, Vdbpsadbw)   \
  X("vpsllvd", 4, 2, kElements, Vpsllvd)    \
  X("vpsllvq", 8, 2, kElements, Vpsllvq)    \
  X("vpsrlvd", 4, 2, kElements, Vpsrlvd)    \
  X("vpsrlvq", 8, 2, kElements, Vpsrlvq)    \
  X("vpsravd", 4, 2, kElements, Vpsravd)

// X(mnemonic, bytes of an element, operation)
#define CLEW_EVEX_SHIFTS(X) \
  X("vpsllw", 2, Psllw)     \
  X("vpslld", 4, Pslld)     \
  X("vpsllq", 8, Psllq)     \
  X("vpsrlw", 2, Psrlw)     \
  X("vpsrld", 4, Psrld)     \
  X("vpsrlq", 8, Psrlq)     \
  X("vpsraw", 2, Psraw)     \
  X("vpsrad", 4, Psrad)     \
  X("vpsraq", 8, Psraq)

}  // namespace

template <class D>
void RegisterEvexInteger(HandlerTable<D>& table) {
#define CLEW_REGISTER(mnemonic, bytes, source_count, access, Op)     \
  table[mnemonic] = kEvex<D,                                         \
                          EvexShape{.element = bytes,                \
                                    .sources = source_count,         \
                                    .memory = MaskedMemory::access}, \
                          InLanes<Op>>;
  CLEW_EVEX_LANE_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
#define CLEW_REGISTER(Name, mnemonic, Element, source_count, Makes)            \
  table[mnemonic] =                                                            \
      kEvex<D, EvexShape{.element = sizeof(Element), .sources = source_count}, \
            Name>;
  CLEW_EVEX_INTEGER_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
#define CLEW_REGISTER(mnemonic, bytes, Op) \
  table[mnemonic] = SelectWideShift<D, bytes, Op, Op##Imm>;
  CLEW_EVEX_SHIFTS(CLEW_REGISTER)
#undef CLEW_REGISTER
#define CLEW_REGISTER(mnemonic, Holds, Element) \
  table[mnemonic] =                             \
      kEvexToOpmask<D, EvexShape{.element = sizeof(Element)}, Holds<Element>>;
  CLEW_EVEX_COMPARISONS(CLEW_REGISTER)
#undef CLEW_REGISTER
  table["vpshufbitqmb"] =
      kEvexToOpmask<D, EvexShape{.element = 1}, Vpshufbitqmb>;
  table["vpslldq"] = kWideByteShift<D, Pslldq>;
  table["vpsrldq"] = kWideByteShift<D, Psrldq>;
}

CLEW_INSTANTIATE_FAMILY(RegisterEvexInteger);

}  // namespace clew::machine
