// What only AVX and AVX2 have: broadcasts, halves of a register, permutations,
// shifts by a count for each element, moves under a mask.

#include "machine/insn/sse_common.h"
#include "machine/vector/permute.h"
#include "machine/vector/shuffle.h"

namespace clew::machine {
namespace {

// Of what has a VEX form of 256 bits only.
template <class D, Handler<D> kHandler>
Handler<D> SelectVex256(const Insn& insn) {
  return insn.vector_bytes == kVex256.size_bytes() ? kHandler : nullptr;
}

// A quadword of eight bytes, four words, ... that are all `element`.
template <class U>
uint64_t Repeated(U element) {
  return ~uint64_t{0} / static_cast<U>(~U{0}) * element;
}

// VBROADCASTSS, VPBROADCASTB and their kin: quadwords carry their shadow.
template <class D, class U, VecForm kForm>
void Broadcast(Cpu<D>& cpu, const Insn& insn) {
  const auto element = cpu.template ReadLow<U>(insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  typename Cpu<D>::template Quads<kForm> value;
  if constexpr (sizeof(U) == sizeof(uint64_t)) {
    value.fill(element);
  } else {
    value.fill(cpu.d().Const(Repeated<U>(cpu.d().Concretise(element))));
  }
  cpu.template WriteQuads<kForm>(insn, insn.op[0], value);
}

template <class D, class U>
constexpr Selector<D> kBroadcast =
    SelectVex<D, 2, []<VecForm kForm>() -> Handler<D> {
      return &Broadcast<D, U, kForm>;
    }>;

// VBROADCASTF128, VBROADCASTI128.
template <class D>
void BroadcastHalf(Cpu<D>& cpu, const Insn& insn) {
  const auto half = cpu.template ReadQuads<kVex128>(insn, insn.op[1]);
  cpu.template WriteQuads<kVex256>(insn, insn.op[0],
                                   {half[0], half[1], half[0], half[1]});
}

template <class D>
void InsertHalf(Cpu<D>& cpu, const Insn& insn) {
  const auto half = cpu.template ReadQuads<kVex128>(insn, insn.op[2]);
  auto value = cpu.template ReadQuads<kVex256>(insn, insn.op[1]);
  std::ranges::copy(half, value.begin() + 2 * (insn.imm & 1));
  cpu.template WriteQuads<kVex256>(insn, insn.op[0], value);
}

template <class D>
void ExtractHalf(Cpu<D>& cpu, const Insn& insn) {
  const auto value = cpu.template ReadQuads<kVex256>(insn, insn.op[1]);
  const unsigned first = 2 * (insn.imm & 1);
  cpu.template WriteQuads<kVex128>(insn, insn.op[0],
                                   {value[first], value[first + 1]});
}

// VPERM2F128, VPERM2I128: each half is a half of a source, or zero.
template <class D>
void PermuteHalves(Cpu<D>& cpu, const Insn& insn) {
  const auto second = cpu.template ReadQuads<kVex256>(insn, insn.op[2]);
  if (cpu.faulted()) {
    return;
  }
  const auto first = cpu.template ReadQuads<kVex256>(insn, insn.op[1]);
  typename Cpu<D>::template Quads<kVex256> value;
  for (unsigned i = 0; i < value.size(); ++i) {
    const auto control = static_cast<unsigned>(insn.imm >> (4 * (i / 2))) & 15;
    const auto& source = (control & 2) != 0 ? second : first;
    value[i] = (control & 8) != 0 ? cpu.d().Const(uint64_t{0})
                                  : source[2 * (control & 1) + i % 2];
  }
  cpu.template WriteQuads<kVex256>(insn, insn.op[0], value);
}

// VPERMQ, VPERMPD.
template <class D>
void PermuteQuads(Cpu<D>& cpu, const Insn& insn) {
  const auto source = cpu.template ReadQuads<kVex256>(insn, insn.op[1]);
  auto value = source;
  for (unsigned i = 0; i < value.size(); ++i) {
    value[i] = source[static_cast<unsigned>(insn.imm >> (2 * i)) & 3];
  }
  cpu.template WriteQuads<kVex256>(insn, insn.op[0], value);
}

// VPERMD, VPERMPS.
template <class D>
void PermuteDwords(Cpu<D>& cpu, const Insn& insn) {
  const auto from = cpu.template ReadLanes<kVex256>(insn, insn.op[2]);
  if (cpu.faulted()) {
    return;
  }
  const auto indices = cpu.template ReadLanes<kVex256>(insn, insn.op[1]);
  cpu.template WriteLanes<kVex256>(insn, insn.op[0], Vpermd(indices, from));
}

// VPERMILPS, VPERMILPD: by an immediate, or by a control for each element.
template <class D, VecOp kByVec, VecOp kByImm, unsigned kImmBits>
Handler<D> SelectPermuteInLanes(const Insn& insn) {
  return insn.op[2].is_imm()
             ? SelectVec<D, kByImm, 16, false, 2, kImmBits>(insn)
             : SelectVec<D, kByVec, 16, true, 2>(insn);
}

// VMASKMOVPS and its kin, from memory: only the elements under the mask are
// accessed, the others are zero.
template <class D, class U, VecForm kForm>
void MaskedLoad(Cpu<D>& cpu, const Insn& insn) {
  const auto selected =
      Selected<U>(cpu.template ReadLanes<kForm>(insn, insn.op[1]));
  const uint64_t addr = cpu.Address(insn);
  std::array<U, selected.size()> elements = {};
  for (size_t i = 0; i < elements.size(); ++i) {
    if (selected[i] && !cpu.CheckLoad(addr + i * sizeof(U), sizeof(U))) {
      return;
    }
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    if (selected[i]) {
      elements[i] =
          cpu.d().Concretise(cpu.template Load<U>(addr + i * sizeof(U)));
    }
  }
  using Lanes = typename Cpu<D>::template Vec<kForm>;
  cpu.template WriteLanes<kForm>(insn, insn.op[0],
                                 std::bit_cast<Lanes>(elements));
}

// As FaultsAtLastByte, of the elements from `addr` on that are selected.
template <class D, class U, size_t kCount>
bool SelectedFaultAtLastByte(Cpu<D>& cpu, uint64_t addr,
                             const std::array<bool, kCount>& selected) {
  const auto first = std::ranges::find(selected, true);
  if (first == selected.end()) {
    return false;
  }
  const auto behind =
      std::find(selected.rbegin(), selected.rend(), true).base();
  const auto place = [&](auto element) {
    return addr + static_cast<uint64_t>(element - selected.begin()) * sizeof(U);
  };
  return FaultsAtLastByte(cpu, place(first), place(behind) - 1);
}

template <class D, class U, VecForm kForm>
void MaskedStore(Cpu<D>& cpu, const Insn& insn) {
  const auto selected =
      Selected<U>(cpu.template ReadLanes<kForm>(insn, insn.op[1]));
  if (SelectedFaultAtLastByte<D, U>(cpu, cpu.Address(insn), selected)) {
    return;
  }
  const auto elements = std::bit_cast<std::array<U, selected.size()>>(
      cpu.template ReadLanes<kForm>(insn, insn.op[2]));
  StoreSelected<U>(cpu, cpu.Address(insn), selected, elements);
}

template <class D, class U>
Handler<D> SelectMasked(const Insn& insn) {
  return ByForm<D, 2>(insn, [&]<VecForm kForm>() -> Handler<D> {
    return insn.op[0].is_mem() ? &MaskedStore<D, U, kForm>
                               : &MaskedLoad<D, U, kForm>;
  });
}

}  // namespace

template <class D>
void RegisterAvx(HandlerTable<D>& table) {
  table["vbroadcastss"] = kBroadcast<D, uint32_t>;
  table["vbroadcastsd"] = kBroadcast<D, uint64_t>;
  table["vpbroadcastb"] = kBroadcast<D, uint8_t>;
  table["vpbroadcastw"] = kBroadcast<D, uint16_t>;
  table["vpbroadcastd"] = kBroadcast<D, uint32_t>;
  table["vpbroadcastq"] = kBroadcast<D, uint64_t>;
  for (const char* mnemonic : {"vbroadcastf128", "vbroadcasti128"}) {
    table[mnemonic] = SelectVex256<D, &BroadcastHalf<D>>;
  }
  for (const char* mnemonic : {"vinsertf128", "vinserti128"}) {
    table[mnemonic] = SelectVex256<D, &InsertHalf<D>>;
  }
  for (const char* mnemonic : {"vextractf128", "vextracti128"}) {
    table[mnemonic] = SelectVex256<D, &ExtractHalf<D>>;
  }
  for (const char* mnemonic : {"vperm2f128", "vperm2i128"}) {
    table[mnemonic] = SelectVex256<D, &PermuteHalves<D>>;
  }
  for (const char* mnemonic : {"vpermq", "vpermpd"}) {
    table[mnemonic] = SelectVex256<D, &PermuteQuads<D>>;
  }
  for (const char* mnemonic : {"vpermd", "vpermps"}) {
    table[mnemonic] = SelectVex256<D, &PermuteDwords<D>>;
  }
  table["vpermilps"] = SelectPermuteInLanes<D, Vpermilps, Pshufd, 0>;
  table["vpermilpd"] = SelectPermuteInLanes<D, Vpermilpd, VpermilpdImm, 2>;
  table["vpblendd"] = SelectVec<D, Blendps, 16, true, 2, 4>;
  table["vpsllvd"] = SelectVec<D, Vpsllvd, 16, true, 2>;
  table["vpsllvq"] = SelectVec<D, Vpsllvq, 16, true, 2>;
  table["vpsrlvd"] = SelectVec<D, Vpsrlvd, 16, true, 2>;
  table["vpsrlvq"] = SelectVec<D, Vpsrlvq, 16, true, 2>;
  table["vpsravd"] = SelectVec<D, Vpsravd, 16, true, 2>;
  table["vtestps"] = kToFlags<D, Vtestps, 16, 2>;
  table["vtestpd"] = kToFlags<D, Vtestpd, 16, 2>;
  for (const char* mnemonic : {"vmaskmovps", "vpmaskmovd"}) {
    table[mnemonic] = SelectMasked<D, uint32_t>;
  }
  for (const char* mnemonic : {"vmaskmovpd", "vpmaskmovq"}) {
    table[mnemonic] = SelectMasked<D, uint64_t>;
  }
}

CLEW_INSTANTIATE_FAMILY(RegisterAvx);

}  // namespace clew::machine
