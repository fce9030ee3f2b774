// VPGATHERDD, VGATHERDPS and their kin: elements from addresses that a vector
// register says.

#include "machine/insn/evex_common.h"

namespace clew::machine {
namespace {

// A vector register, whole.
template <class U, class D>
WideElements<U> ReadElements(Cpu<D>& cpu, uint8_t number) {
  return ElementsOf<U>(
      ReadWide(cpu, {OperandKind::kVec, sizeof(Wide), number}, kVecLanes));
}

// op[0] = the elements at base + index * scale, of those whose mask in op[2]
// has its top bit set. An element that cannot be read is a fault, with those
// below it in place and their masks zero: so the instruction goes on where it
// stopped. In the end op[2] is zero, and what of op[0] lies above the last
// element.
//
// Source: Intel SDM vol. 2, "VPGATHERDD/VPGATHERQD". A fault leaves the masks
// from its element on, and what lies above the vector length, as they were on
// AMD's CPUs. Intel's have made each mask all ones or all zeros by then, and
// cleared what lies above; in op[0] once an element was loaded. (Manuals leave
// it open; this is what Sapphire Rapids does.)
template <class D, class Element, class Index, VecForm kForm>
void Gather(Cpu<D>& cpu, const Insn& insn) {
  constexpr unsigned kCount =
      kForm.size_bytes() / std::max(sizeof(Element), sizeof(Index));
  // What fills the vector length, of which kCount may be half.
  constexpr unsigned kWidth = kForm.size_bytes() / sizeof(Element);
  const uint8_t to = insn.op[0].reg;
  const uint8_t mask_register = insn.op[2].reg;
  const auto indices = ReadElements<Index>(cpu, insn.mem.vector_index);
  auto value = ReadElements<Element>(cpu, to);
  auto mask = ReadElements<Element>(cpu, mask_register);
  const uint64_t base = cpu.Address(insn);
  const bool is_of_intel = cpu.regs().is_of_intel();
  if (is_of_intel) {
    for (unsigned i = 0; i < mask.size(); ++i) {
      const bool is_set =
          i < kWidth && mask[i] >> (8 * sizeof(Element) - 1) != 0;
      mask[i] = is_set ? ~Element{0} : 0;
    }
  }
  bool has_loaded = false;
  for (unsigned i = 0; i < kCount; ++i) {
    if (mask[i] >> (8 * sizeof(Element) - 1) != 0) {
      const auto index = static_cast<std::make_signed_t<Index>>(indices[i]);
      const auto element = cpu.template Load<Element>(
          base + (static_cast<uint64_t>(int64_t{index}) << insn.mem.shift));
      if (cpu.faulted()) {
        break;
      }
      value[i] = cpu.d().Concretise(element);
      has_loaded = true;
    }
    mask[i] = 0;
  }
  if (!cpu.faulted()) {
    std::fill(value.begin() + kCount, value.end(), Element{0});
    mask.fill(0);
  } else if (is_of_intel && has_loaded) {
    std::fill(value.begin() + kWidth, value.end(), Element{0});
  }
  WriteWide(cpu, insn, insn.op[0], FromElements<Element>(value));
  WriteWide(cpu, insn, insn.op[2], FromElements<Element>(mask));
}

// Two registers of the three that are one: #UD. Addresses of 32 bits, which no
// compiler makes, are refused too.
bool IsRefused(const Insn& insn) {
  const uint8_t to = insn.op[0].reg;
  const uint8_t mask = insn.op[2].reg;
  const uint8_t index = insn.mem.vector_index;
  return insn.addr32 || to == mask || to == index || mask == index;
}

template <class D, class Element, class Index>
Handler<D> SelectGather(const Insn& insn) {
  return IsRefused(insn) ? nullptr
                         : SelectVex<D, 2, []<VecForm kForm>() -> Handler<D> {
                             return &Gather<D, Element, Index, kForm>;
                           }>(insn);
}

}  // namespace

template <class D>
void RegisterGather(HandlerTable<D>& table) {
  for (const char* mnemonic : {"vpgatherdd", "vgatherdps"}) {
    table[mnemonic] = SelectGather<D, uint32_t, uint32_t>;
  }
  for (const char* mnemonic : {"vpgatherdq", "vgatherdpd"}) {
    table[mnemonic] = SelectGather<D, uint64_t, uint32_t>;
  }
  for (const char* mnemonic : {"vpgatherqd", "vgatherqps"}) {
    table[mnemonic] = SelectGather<D, uint32_t, uint64_t>;
  }
  for (const char* mnemonic : {"vpgatherqq", "vgatherqpd"}) {
    table[mnemonic] = SelectGather<D, uint64_t, uint64_t>;
  }
}

CLEW_INSTANTIATE_FAMILY(RegisterGather);

}  // namespace clew::machine
