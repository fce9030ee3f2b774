// EVEX: moves of vector registers, whole and by scalars, bitwise logic, and
// what goes between opmask and vector registers. Whole quadwords carry a
// shadow.

#include "machine/insn/evex_common.h"

namespace clew::machine {
namespace {

// Quadwords of a vector register with their shadow.
template <class D>
using WideQuads = std::array<Val<D, uint64_t>, kVecQuads>;

template <class D>
WideQuads<D> ReadWideQuads(Cpu<D>& cpu, const Operand& operand,
                           unsigned count) {
  WideQuads<D> quads = {};
  for (unsigned i = 0; i < count; ++i) {
    quads[i] = cpu.GetQuad(operand.reg, i);
  }
  return quads;
}

template <class D>
void WriteWideQuads(Cpu<D>& cpu, const Insn& insn, const WideQuads<D>& quads) {
  for (unsigned i = 0; i < kVecQuads; ++i) {
    cpu.SetQuad(insn.op[0].reg, i, quads[i]);
  }
  cpu.NoteVectorUse(insn.op[0].reg, insn.vector_bytes);
}

// Reads as many lanes as the vector length has, of a register or memory, in
// one access.
template <class D>
WideQuads<D> ReadQuadsOf(Cpu<D>& cpu, const Insn& insn,
                         const Operand& operand) {
  const unsigned lanes = LanesOf(insn);
  if (operand.is_vec()) {
    return ReadWideQuads(cpu, operand, 2 * lanes);
  }
  WideQuads<D> quads = {};
  const auto take = [&]<VecForm kForm>() {
    std::ranges::copy(cpu.template ReadQuads<kForm>(insn, operand),
                      quads.begin());
  };
  lanes == 1   ? take.template operator()<kVex128>()
  : lanes == 2 ? take.template operator()<kVex256>()
               : take.template operator()<kEvex512>();
  return quads;
}

template <class D>
void StoreQuadsOf(Cpu<D>& cpu, const Insn& insn, const WideQuads<D>& quads) {
  const auto put = [&]<VecForm kForm>() {
    typename Cpu<D>::template Quads<kForm> some;
    std::ranges::copy_n(quads.begin(), some.size(), some.begin());
    cpu.template WriteQuads<kForm>(insn, insn.op[0], some);
  };
  const unsigned lanes = LanesOf(insn);
  lanes == 1   ? put.template operator()<kVex128>()
  : lanes == 2 ? put.template operator()<kVex256>()
               : put.template operator()<kEvex512>();
}

// Whether the memory operand, if there is one, is aligned to the vector length;
// else it is a fault. (Not under a mask that selects nothing: manuals leave it
// open, this is what Sapphire Rapids does.)
template <class D>
bool IsAligned(Cpu<D>& cpu, const Insn& insn, unsigned count) {
  const bool stores = insn.op[0].is_mem();
  if ((!stores && !insn.op[1].is_mem()) || SelectedOf(cpu, insn, count) == 0) {
    return true;
  }
  const uint64_t addr = cpu.Address(insn);
  if (addr % insn.vector_bytes != 0) {
    cpu.Raise(FaultKind::kGeneral, addr, stores);
    return false;
  }
  return true;
}

// VMOVDQU8, VMOVAPS and their kin, of elements of kElement bytes.
template <class D, uint8_t kElement, bool kAligned>
void MoveWide(Cpu<D>& cpu, const Insn& insn) {
  if (kAligned && !IsAligned(cpu, insn, insn.vector_bytes / kElement)) {
    return;
  }
  if (insn.opmask != 0) {
    RunEvex(cpu, insn, EvexShape{.element = kElement, .sources = 1}, &Copy);
    return;
  }
  const WideQuads<D> value = ReadQuadsOf(cpu, insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  if (insn.op[0].is_mem()) {
    StoreQuadsOf(cpu, insn, value);
  } else {
    WriteWideQuads(cpu, insn, value);
  }
}

// Bitwise operations, of quadwords: a shadow is kept. The operation has static
//   Quad(d, a, b, c, imm), of op[0], the first and the second source.
template <class D, class Op, uint8_t kElement, uint8_t kSources>
void WideLogic(Cpu<D>& cpu, const Insn& insn) {
  const bool is_plain = insn.opmask == 0 && !insn.broadcast;
  if (!is_plain) {
    constexpr EvexShape kShape = {.element = kElement, .sources = kSources};
    RunEvex(cpu, insn, kShape, [](Wide& dst, const Wide& src, WideState& s) {
      Concrete plain;
      for (unsigned i = 0; i < kVecQuads; ++i) {
        uint64_t& to = dst[i / 2].q[i % 2];
        const uint64_t last = src[i / 2].q[i % 2];
        to = kSources == 3
                 ? Op::Quad(plain, to, s.third[i / 2].q[i % 2], last, s.imm)
                 : Op::Quad(plain, uint64_t{0}, to, last, s.imm);
      }
    });
    return;
  }
  const WideQuads<D> last = ReadQuadsOf(cpu, insn, insn.op[2]);
  if (cpu.faulted()) {
    return;
  }
  const unsigned count = 2 * LanesOf(insn);
  WideQuads<D> value = {};
  if constexpr (kSources == 3) {
    value = ReadWideQuads(cpu, insn.op[0], count);
  }
  const WideQuads<D> first = ReadWideQuads(cpu, insn.op[1], count);
  for (unsigned i = 0; i < count; ++i) {
    value[i] = Op::Quad(cpu.d(), value[i], first[i], last[i],
                        static_cast<uint8_t>(insn.imm));
  }
  WriteWideQuads(cpu, insn, value);
}

struct WideAnd {
  template <class D, class V>
  static V Quad(D& d, const V&, const V& a, const V& b, uint8_t) {
    return d.template And<uint64_t>(a, b);
  }
};
struct WideAndNot {
  template <class D, class V>
  static V Quad(D& d, const V&, const V& a, const V& b, uint8_t) {
    return d.template And<uint64_t>(d.template Not<uint64_t>(a), b);
  }
};
struct WideOr {
  template <class D, class V>
  static V Quad(D& d, const V&, const V& a, const V& b, uint8_t) {
    return d.template Or<uint64_t>(a, b);
  }
};
struct WideXor {
  template <class D, class V>
  static V Quad(D& d, const V&, const V& a, const V& b, uint8_t) {
    return d.template Xor<uint64_t>(a, b);
  }
};
// VPTERNLOG: bit 4a + 2b + c of the immediate is the result for bits a, b, c.
// An operand that it does not depend on is not looked at, so that its shadow
// does not get into the result.
struct WideTernary {
  template <class D, class V>
  static V Quad(D& d, const V& a, const V& b, const V& c, uint8_t imm) {
    V value = d.Const(uint64_t{0});
    for (unsigned row = 0; row < 8; ++row) {
      if ((imm >> row & 1) != 0) {
        value = d.template Or<uint64_t>(value, Row(d, a, b, c, imm, row));
      }
    }
    return value;
  }

 private:
  // Where an operand makes no difference, the row with its bit set says what
  // the one without it says.
  template <class D, class V>
  static V Row(D& d, const V& a, const V& b, const V& c, uint8_t imm,
               unsigned row) {
    V value = d.Const(~uint64_t{0});
    const auto with = [&](const V& operand, unsigned bit, uint8_t of_clear) {
      if (((imm ^ (imm >> bit)) & of_clear) != 0) {
        const V term =
            (row & bit) != 0 ? operand : d.template Not<uint64_t>(operand);
        value = d.template And<uint64_t>(value, term);
      }
    };
    with(a, 4, 0x0f);
    with(b, 2, 0x33);
    with(c, 1, 0x55);
    return value;
  }
};

template <class D, class Op, uint8_t kElement, uint8_t kSources = 2>
constexpr Selector<D> kWideLogic = [](const Insn&) -> Handler<D> {
  return &WideLogic<D, Op, kElement, kSources>;
};

// A register XORed with itself is how it is cleared, whatever it held.
template <class D>
void ClearWide(Cpu<D>& cpu, const Insn& insn) {
  WriteWideQuads(cpu, insn, WideQuads<D>{});
}

template <class D, uint8_t kElement>
Handler<D> SelectWideXor(const Insn& insn) {
  const bool clears = insn.opmask == 0 && insn.op[2].is_vec() &&
                      insn.op[1].reg == insn.op[2].reg;
  return clears ? &ClearWide<D> : &WideLogic<D, WideXor, kElement, 2>;
}

// The low element of the one, the rest of the other.
template <class U>
void MergeLow(Wide& dst, const Wide& src, WideState&) {
  auto elements = ElementsOf<U>(dst);
  elements[0] = ElementsOf<U>(src)[0];
  dst = FromElements<U>(elements);
}

// VMOVSS, VMOVSD: from memory the rest is zero.
template <class D, class U>
Handler<D> SelectMoveScalar(const Insn& insn) {
  constexpr auto kElement = static_cast<uint8_t>(sizeof(U));
  if (insn.op[0].is_mem() || insn.op[1].is_mem()) {
    return &EvexInsn<
        D, EvexShape{.element = kElement, .sources = 1, .is_scalar = true},
        &Copy>;
  }
  return &EvexInsn<D, EvexShape{.element = kElement, .is_scalar = true},
                   &MergeLow<U>>;
}

// VPMOVM2x: every bit of an element is that of the opmask register.
template <class D, class U>
void MaskToVector(Cpu<D>& cpu, const Insn& insn) {
  const uint64_t mask = cpu.GetOpmask(insn.op[1].reg);
  WideElements<U> elements = {};
  for (size_t i = 0; i < insn.vector_bytes / sizeof(U); ++i) {
    elements[i] = (mask >> i & 1) != 0 ? static_cast<U>(~U{0}) : U{0};
  }
  WriteWide(cpu, insn, insn.op[0], FromElements<U>(elements));
}

// VPMOVx2M: the top bits of the elements.
template <class D, class U>
void VectorToMask(Cpu<D>& cpu, const Insn& insn) {
  const auto elements = ElementsOf<U>(ReadWide(cpu, insn.op[1], LanesOf(insn)));
  uint64_t mask = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    mask |= uint64_t{elements[i] >> (8 * sizeof(U) - 1) != 0} << i;
  }
  cpu.SetOpmask(insn.op[0].reg, mask);
}

// VPBROADCASTMB2Q, VPBROADCASTMW2D: the low bits of an opmask register, in each
// element.
template <class D, class Part, class U>
void BroadcastMask(Cpu<D>& cpu, const Insn& insn) {
  const auto part = static_cast<Part>(cpu.GetOpmask(insn.op[1].reg));
  WideElements<U> elements = {};
  std::fill_n(elements.begin(), insn.vector_bytes / sizeof(U), U{part});
  WriteWide(cpu, insn, insn.op[0], FromElements<U>(elements));
}

template <class D>
void RegisterMoves(HandlerTable<D>& table) {
  table["vmovdqu8"] = Always<D, &MoveWide<D, 1, false>>;
  table["vmovdqu16"] = Always<D, &MoveWide<D, 2, false>>;
  for (const char* mnemonic : {"vmovdqu32", "vmovups"}) {
    table[mnemonic] = Always<D, &MoveWide<D, 4, false>>;
  }
  for (const char* mnemonic : {"vmovdqu64", "vmovupd"}) {
    table[mnemonic] = Always<D, &MoveWide<D, 8, false>>;
  }
  for (const char* mnemonic :
       {"vmovdqa32", "vmovaps", "vmovntps", "vmovntdq", "vmovntdqa"}) {
    table[mnemonic] = Always<D, &MoveWide<D, 4, true>>;
  }
  for (const char* mnemonic : {"vmovdqa64", "vmovapd", "vmovntpd"}) {
    table[mnemonic] = Always<D, &MoveWide<D, 8, true>>;
  }
  table["vmovss"] = SelectMoveScalar<D, uint32_t>;
  table["vmovsd"] = SelectMoveScalar<D, uint64_t>;
}

template <class D>
void RegisterLogic512(HandlerTable<D>& table) {
  for (const char* mnemonic : {"vpandd", "vandps"}) {
    table[mnemonic] = kWideLogic<D, WideAnd, 4>;
  }
  for (const char* mnemonic : {"vpandq", "vandpd"}) {
    table[mnemonic] = kWideLogic<D, WideAnd, 8>;
  }
  for (const char* mnemonic : {"vpandnd", "vandnps"}) {
    table[mnemonic] = kWideLogic<D, WideAndNot, 4>;
  }
  for (const char* mnemonic : {"vpandnq", "vandnpd"}) {
    table[mnemonic] = kWideLogic<D, WideAndNot, 8>;
  }
  for (const char* mnemonic : {"vpord", "vorps"}) {
    table[mnemonic] = kWideLogic<D, WideOr, 4>;
  }
  for (const char* mnemonic : {"vporq", "vorpd"}) {
    table[mnemonic] = kWideLogic<D, WideOr, 8>;
  }
  for (const char* mnemonic : {"vpxord", "vxorps"}) {
    table[mnemonic] = SelectWideXor<D, 4>;
  }
  for (const char* mnemonic : {"vpxorq", "vxorpd"}) {
    table[mnemonic] = SelectWideXor<D, 8>;
  }
  table["vpternlogd"] = kWideLogic<D, WideTernary, 4, 3>;
  table["vpternlogq"] = kWideLogic<D, WideTernary, 8, 3>;
}

template <class D, class U>
void RegisterMasksOf(HandlerTable<D>& table, std::string_view to_vector,
                     std::string_view to_mask) {
  table[to_vector] = Always<D, &MaskToVector<D, U>>;
  table[to_mask] = Always<D, &VectorToMask<D, U>>;
}

}  // namespace

template <class D>
void RegisterEvexMove(HandlerTable<D>& table) {
  RegisterMoves(table);
  RegisterLogic512(table);
  RegisterMasksOf<D, uint8_t>(table, "vpmovm2b", "vpmovb2m");
  RegisterMasksOf<D, uint16_t>(table, "vpmovm2w", "vpmovw2m");
  RegisterMasksOf<D, uint32_t>(table, "vpmovm2d", "vpmovd2m");
  RegisterMasksOf<D, uint64_t>(table, "vpmovm2q", "vpmovq2m");
  table["vpbroadcastmb2q"] = Always<D, &BroadcastMask<D, uint8_t, uint64_t>>;
  table["vpbroadcastmw2d"] = Always<D, &BroadcastMask<D, uint16_t, uint32_t>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterEvexMove);

}  // namespace clew::machine
