// EVEX: VPGATHERDD, VPSCATTERDD and their kin: elements at addresses that a
// vector register says, under an opmask register that tells how far it came.

#include "machine/insn/evex_common.h"

namespace clew::machine {
namespace {

template <class Index, class D>
uint64_t ElementAddress(Cpu<D>& cpu, const Insn& insn,
                        const WideElements<Index>& indices, unsigned i) {
  const auto index = static_cast<std::make_signed_t<Index>>(indices[i]);
  return cpu.Address(insn) +
         (static_cast<uint64_t>(int64_t{index}) << insn.mem.shift);
}

template <class Element, class Index>
unsigned GatheredCount(const Insn& insn) {
  return static_cast<unsigned>(insn.vector_bytes /
                               std::max(sizeof(Element), sizeof(Index)));
}

template <class D>
Wide ReadIndices(Cpu<D>& cpu, const Insn& insn) {
  const Operand operand = {OperandKind::kVec, sizeof(Wide),
                           insn.mem.vector_index};
  return ReadWide(cpu, operand, LanesOf(insn));
}

// Of an instruction that has done these elements: clears the opmask register,
// or, if it faulted, their bits.
template <class D>
void SetLeft(Cpu<D>& cpu, const Insn& insn, uint64_t done) {
  if (!cpu.faulted()) {
    cpu.SetOpmask(insn.opmask, 0);
  } else if (done != 0) {
    cpu.SetOpmask(insn.opmask, cpu.GetOpmask(insn.opmask) & ~done);
  }
}

// op[0] = the elements at base + index * scale that the opmask register
// selects. An element that cannot be read is a fault, with those below it in
// place and their bits clear: so the instruction goes on where it stopped. In
// the end the opmask register is zero.
//
// Manuals leave open what a fault leaves above the vector length: zero, once an
// element was loaded. (What fills the vector length beside the elements is
// kept. This is what Sapphire Rapids does.)
template <class D, class Element, class Index>
void WideGather(Cpu<D>& cpu, const Insn& insn) {
  const unsigned count = GatheredCount<Element, Index>(insn);
  const auto indices = ElementsOf<Index>(ReadIndices(cpu, insn));
  auto value = ElementsOf<Element>(ReadWide(cpu, insn.op[0], kVecLanes));
  const uint64_t selected = SelectedOf(cpu, insn, count);
  uint64_t left = selected;
  while (left != 0) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    const auto element = cpu.template Load<Element>(
        ElementAddress<Index>(cpu, insn, indices, i));
    if (cpu.faulted()) {
      break;
    }
    value[i] = cpu.d().Concretise(element);
    left &= left - 1;
  }
  if (cpu.faulted() && left == selected) {
    return;
  }
  const size_t kept =
      cpu.faulted() ? insn.vector_bytes / sizeof(Element) : count;
  std::fill(value.begin() + static_cast<ptrdiff_t>(kept), value.end(),
            Element{0});
  WriteWide(cpu, insn, insn.op[0], FromElements<Element>(value));
  SetLeft(cpu, insn, selected & ~left);
}

// Stores what the opmask register selects of op[1], in the order of elements:
// of those that overlap, the last one stays. A fault is as of a gather.
template <class D, class Element, class Index>
void WideScatter(Cpu<D>& cpu, const Insn& insn) {
  const unsigned count = GatheredCount<Element, Index>(insn);
  const auto indices = ElementsOf<Index>(ReadIndices(cpu, insn));
  const auto value =
      ElementsOf<Element>(ReadWide(cpu, insn.op[1], LanesOf(insn)));
  const uint64_t selected = SelectedOf(cpu, insn, count);
  uint64_t left = selected;
  while (left != 0) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    if (!cpu.template Store<Element>(
            ElementAddress<Index>(cpu, insn, indices, i),
            cpu.d().Const(value[i]))) {
      break;
    }
    left &= left - 1;
  }
  SetLeft(cpu, insn, selected & ~left);
}

// The destination of a gather may not hold its indices: #UD. Addresses of 32
// bits, which no compiler makes, are refused too.
template <class D, class Element, class Index>
Handler<D> SelectWideGather(const Insn& insn) {
  const bool refused = insn.addr32 || insn.op[0].reg == insn.mem.vector_index;
  return refused ? nullptr : &WideGather<D, Element, Index>;
}

template <class D, class Element, class Index>
Handler<D> SelectWideScatter(const Insn& insn) {
  return insn.addr32 ? nullptr : &WideScatter<D, Element, Index>;
}

template <class D, class Element, class Index>
void RegisterOf(HandlerTable<D>& table, std::string_view integer_gather,
                std::string_view gather, std::string_view integer_scatter,
                std::string_view scatter) {
  for (const std::string_view mnemonic : {integer_gather, gather}) {
    table[mnemonic] = SelectWideGather<D, Element, Index>;
  }
  for (const std::string_view mnemonic : {integer_scatter, scatter}) {
    table[mnemonic] = SelectWideScatter<D, Element, Index>;
  }
}

}  // namespace

template <class D>
void RegisterEvexGather(HandlerTable<D>& table) {
  RegisterOf<D, uint32_t, uint32_t>(table, "vpgatherdd", "vgatherdps",
                                    "vpscatterdd", "vscatterdps");
  RegisterOf<D, uint64_t, uint32_t>(table, "vpgatherdq", "vgatherdpd",
                                    "vpscatterdq", "vscatterdpd");
  RegisterOf<D, uint32_t, uint64_t>(table, "vpgatherqd", "vgatherqps",
                                    "vpscatterqd", "vscatterqps");
  RegisterOf<D, uint64_t, uint64_t>(table, "vpgatherqq", "vgatherqpd",
                                    "vpscatterqq", "vscatterqpd");
}

CLEW_INSTANTIATE_FAMILY(RegisterEvexGather);

}  // namespace clew::machine
