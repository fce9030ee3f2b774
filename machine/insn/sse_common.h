#ifndef CLEW_MACHINE_INSN_SSE_COMMON_H_
#define CLEW_MACHINE_INSN_SSE_COMMON_H_

#include <string_view>

#include "machine/insn/families.h"
#include "machine/vector/vec_op.h"

// The shapes of SSE instructions over the value functions of machine/vector.
// They compute on plain values: a shadow is concretised. What only moves or
// combines bits carries it instead (sse_move.cc).

namespace clew::machine {

template <unsigned kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using Type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using Type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using Type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using Type = uint64_t;
};

inline constexpr uint32_t kMxcsrBits = 0xffff;  // the others are reserved

// What some legacy forms use without naming it.
inline constexpr Operand kXmm0 = {OperandKind::kVec, kLaneBytes, 0};

// A source of one lane: a vector or MMX register whole; of memory or a general
// register kBytes, in the low bits. Alignment is as Cpu::ReadQuads has it.
template <VecForm kForm, unsigned kBytes, class D>
Vec128 ReadLane(Cpu<D>& cpu, const Insn& insn, const Operand& operand) {
  constexpr VecForm kOneLane = {kForm.vex, 1};
  if constexpr (kBytes == kLaneBytes) {
    return cpu.template ReadLanes<kOneLane>(insn, operand)[0];
  } else {
    if (operand.is_vec() || operand.is_mmx()) {
      return cpu.template ReadLanes<kOneLane>(insn, operand)[0];
    }
    using U = typename UnsignedOf<kBytes>::Type;
    return {{cpu.d().Concretise(cpu.template Read<U>(insn, operand)), 0}};
  }
}

// A source of kBytes a lane, for each lane in its low bits; what is above them
// is anything. Where kBytes are less than a lane, those of the upper lane lie
// directly behind those of the lower one, in the low lane of a register too.
template <VecForm kForm, unsigned kBytes, class D>
typename Cpu<D>::template Vec<kForm> ReadSource(Cpu<D>& cpu, const Insn& insn,
                                                const Operand& operand) {
  if constexpr (kBytes == kLaneBytes) {
    return cpu.template ReadLanes<kForm>(insn, operand);
  } else if constexpr (kForm.lanes == 1) {
    return {ReadLane<kForm, kBytes>(cpu, insn, operand)};
  } else {
    const Vec128 both = ReadLane<kForm, 2 * kBytes>(cpu, insn, operand);
    if constexpr (kBytes == sizeof(both.q[0])) {
      return {both, Vec128{{both.q[1], 0}}};
    } else {
      return {both, Vec128{{both.q[0] >> (8 * kBytes), 0}}};
    }
  }
}

// The MXCSR that an instruction computes under.
template <class D>
uint32_t MxcsrFor(Cpu<D>& cpu, const Insn& insn) {
  constexpr unsigned kRoundingAt = 13;
  constexpr uint32_t kRounding = 3u << kRoundingAt;
  const uint32_t mxcsr = cpu.regs().mxcsr;
  if (insn.rounding == Rounding::kByMxcsr ||
      insn.rounding == Rounding::kSuppressExceptions) [[likely]] {
    return mxcsr;
  }
  const auto how = static_cast<uint32_t>(insn.rounding) -
                   static_cast<uint32_t>(Rounding::kNearest);
  return (mxcsr & ~kRounding) | how << kRoundingAt;
}

// Takes the exception flags over from what MxcsrFor has become.
template <class D>
void NoteExceptions(Cpu<D>& cpu, const Insn& insn, uint32_t mxcsr) {
  if (insn.rounding == Rounding::kByMxcsr) [[likely]] {
    cpu.regs().mxcsr = mxcsr;
  }
}

template <class D>
VecState StateFor(Cpu<D>& cpu, const Insn& insn) {
  VecState state;
  state.mxcsr = MxcsrFor(cpu, insn);
  state.imm = static_cast<uint8_t>(insn.imm);
  state.is_of_qemu = cpu.regs().is_of_qemu();
  return state;
}

// op[0] = kOp(first source, second source) in each lane, op[0] a vector or MMX
// register; op[0] = kOp(op[1]) where the destination is not read. The upper
// lane has its own bits of the immediate: those from bit kImmBits on.
template <class D, VecOp kOp, unsigned kBytes, bool kReadsDst,
          VecForm kForm = kSse, unsigned kImmBits = 0>
void VecInsn(Cpu<D>& cpu, const Insn& insn) {
  constexpr unsigned kSource = kReadsDst ? kForm.second_source() : 1;
  const auto src = ReadSource<kForm, kBytes>(cpu, insn, insn.op[kSource]);
  if (cpu.faulted()) {
    return;
  }
  typename Cpu<D>::template Vec<kForm> dst;
  if constexpr (kReadsDst) {
    dst = cpu.template ReadLanes<kForm>(insn, insn.op[kForm.first_source()]);
  }
  VecState state = StateFor(cpu, insn);
  for (unsigned lane = 0; lane < kForm.lanes; ++lane) {
    kOp(dst[lane], src[lane], state);
    state.imm = static_cast<uint8_t>(state.imm >> kImmBits);
  }
  NoteExceptions(cpu, insn, state.mxcsr);
  cpu.template WriteLanes<kForm>(insn, insn.op[0], dst);
}

// op[0] = kOp(first, second) in each lane, with a third source beside them.
template <VecOp kOp, unsigned kBytes, VecForm kForm, class D>
void ThreeSources(Cpu<D>& cpu, const Insn& insn, const Operand& first,
                  const Operand& second, const Operand& third) {
  const auto src = ReadSource<kForm, kBytes>(cpu, insn, second);
  if (cpu.faulted()) {
    return;
  }
  auto dst = cpu.template ReadLanes<kForm>(insn, first);
  const auto beside = cpu.template ReadLanes<kForm>(insn, third);
  VecState state = StateFor(cpu, insn);
  for (unsigned lane = 0; lane < kForm.lanes; ++lane) {
    state.third = beside[lane];
    kOp(dst[lane], src[lane], state);
  }
  NoteExceptions(cpu, insn, state.mxcsr);
  cpu.template WriteLanes<kForm>(insn, insn.op[0], dst);
}

// Which elements of a mask have their top bit set.
template <class U, class Lanes>
std::array<bool, sizeof(Lanes) / sizeof(U)> Selected(const Lanes& mask) {
  std::array<bool, sizeof(Lanes) / sizeof(U)> selected;
  const auto elements = std::bit_cast<std::array<U, selected.size()>>(mask);
  for (size_t i = 0; i < selected.size(); ++i) {
    selected[i] = elements[i] >> (8 * sizeof(U) - 1) != 0;
  }
  return selected;
}

// Whether a store under a mask, from `begin` to `last`, is one that Intel's
// CPUs have fault at its last byte: it reaches into another page, and may not
// store there. (Any other, and all of other CPUs, faults at the first byte that
// cannot be stored. Manuals leave it open; this is what Sapphire Rapids does
// under every mask.)
template <class D>
bool FaultsAtLastByte(Cpu<D>& cpu, uint64_t begin, uint64_t last) {
  return cpu.regs().is_of_intel() && begin / kPageBytes != last / kPageBytes &&
         cpu.CanStore(begin, 1) && !cpu.CheckStore(last, 1);
}

// Stores the elements at `addr` that are selected, and accesses no other.
template <class U, size_t kCount, class D>
void StoreSelected(Cpu<D>& cpu, uint64_t addr,
                   const std::array<bool, kCount>& selected,
                   const std::array<U, kCount>& elements) {
  for (size_t i = 0; i < kCount; ++i) {
    if (selected[i] && !cpu.CheckStore(addr + i * sizeof(U), sizeof(U))) {
      return;
    }
  }
  for (size_t i = 0; i < kCount; ++i) {
    if (selected[i]) {
      cpu.template Store<U>(addr + i * sizeof(U), cpu.d().Const(elements[i]));
    }
  }
}

// op[0] = the first source with one half replaced by the second source, which
// is memory or a general register.
template <VecForm kForm, class D>
void ReplaceHalf(Cpu<D>& cpu, const Insn& insn, unsigned half) {
  const auto value =
      cpu.template Read<uint64_t>(insn, insn.op[kForm.second_source()]);
  if (!cpu.faulted()) {
    auto quads =
        cpu.template ReadQuads<kForm>(insn, insn.op[kForm.first_source()]);
    quads[half] = value;
    cpu.template WriteQuads<kForm>(insn, insn.op[0], quads);
  }
}

// A general register = kOp(op[1]); of several lanes, each has kBits of it.
template <class D, VecToGprOp kOp, unsigned kBytes, VecForm kForm = kSse,
          unsigned kBits = 0>
void ToGprInsn(Cpu<D>& cpu, const Insn& insn) {
  const auto src = ReadSource<kForm, kBytes>(cpu, insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  VecState state = StateFor(cpu, insn);
  uint64_t value = 0;
  for (unsigned lane = 0; lane < kForm.lanes; ++lane) {
    value |= kOp(src[lane], state) << (lane * kBits);
  }
  NoteExceptions(cpu, insn, state.mxcsr);
  cpu.template SetReg<uint64_t>(insn.op[0].reg, cpu.d().Const(value));
}

// Flags = kOp(op[0], op[1]); of several lanes, what is set by all of them.
template <class D, VecToFlagsOp kOp, unsigned kBytes, VecForm kForm = kSse>
void ToFlagsInsn(Cpu<D>& cpu, const Insn& insn) {
  const auto src = ReadSource<kForm, kBytes>(cpu, insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  VecState state = StateFor(cpu, insn);
  const auto dst = cpu.template ReadLanes<kForm>(insn, insn.op[0]);
  uint64_t flags = kFlagsArithmetic;
  for (unsigned lane = 0; lane < kForm.lanes; ++lane) {
    flags &= kOp(dst[lane], src[lane], state);
  }
  NoteExceptions(cpu, insn, state.mxcsr);
  cpu.flags().SetAll(flags);
}

inline bool HasMmx(const Insn& insn) {
  return insn.op[0].is_mmx() || insn.op[1].is_mmx();
}

// f<kForm>() for the form of an instruction whose VEX forms, if any, have up to
// kVexLanes lanes; nullptr for another form.
template <class D, unsigned kVexLanes, class F>
Handler<D> ByForm(const Insn& insn, F f) {
  if (insn.vector_bytes == 0) {
    return f.template operator()<kSse>();
  }
  if constexpr (kVexLanes >= 1) {
    if (insn.vector_bytes == kVex128.size_bytes()) {
      return f.template operator()<kVex128>();
    }
  }
  if constexpr (kVexLanes >= 2) {
    if (insn.vector_bytes == kVex256.size_bytes()) {
      return f.template operator()<kVex256>();
    }
  }
  return nullptr;
}

// kHandlers is what ByForm takes, without captures: as a template argument it
// makes a selector of an expression.
template <class D, unsigned kVexLanes, auto kHandlers>
Handler<D> SelectByForm(const Insn& insn) {
  return HasMmx(insn) ? nullptr : ByForm<D, kVexLanes>(insn, kHandlers);
}

// Of an instruction whose handler does not depend on the form: it writes no
// vector register.
template <class D, unsigned kVexLanes, Handler<D> kHandler>
Handler<D> SelectFormless(const Insn& insn) {
  return SelectByForm<D, kVexLanes, []<VecForm>() { return kHandler; }>(insn);
}

// Of what has VEX forms only.
template <class D, unsigned kVexLanes, auto kHandlers>
Handler<D> SelectVex(const Insn& insn) {
  return insn.vector_bytes != 0 ? ByForm<D, kVexLanes>(insn, kHandlers)
                                : nullptr;
}

template <class D, Handler<D> kHandler>
Handler<D> SelectSse(const Insn& insn) {
  return SelectFormless<D, 0, kHandler>(insn);
}

template <class D, VecToFlagsOp kOp, unsigned kBytes, unsigned kVexLanes>
constexpr Selector<D> kToFlags =
    SelectByForm<D, kVexLanes, []<VecForm kForm>() -> Handler<D> {
      return &ToFlagsInsn<D, kOp, kBytes, kForm>;
    }>;

template <class D, VecOp kOp, unsigned kBytes, bool kReadsDst,
          unsigned kVexLanes = 0, unsigned kImmBits = 0>
Handler<D> SelectVec(const Insn& insn) {
  if (!insn.op[0].is_vec()) {
    return nullptr;
  }
  return SelectByForm<D, kVexLanes, []<VecForm kForm>() -> Handler<D> {
    return &VecInsn<D, kOp, kBytes, kReadsDst, kForm, kImmBits>;
  }>(insn);
}

// An instruction on an MMX register: kHandler, and what it does to the x87
// stack, unless it faults.
template <class D, Handler<D> kHandler>
void MmxInsn(Cpu<D>& cpu, const Insn& insn) {
  kHandler(cpu, insn);
  if (!cpu.faulted()) {
    X87Stack(cpu.regs().x87).EnterMmx();
  }
}

// The MMX form of an instruction that has one without a prefix. With one there
// is no such instruction, or another that the decoder took for it.
template <class D, Handler<D> kHandler>
Handler<D> SelectMmx(const Insn& insn) {
  const bool prefixed = insn.opsize || insn.rep || insn.repne;
  return prefixed ? nullptr : &MmxInsn<D, kHandler>;
}

// One that has an MMX register in all its forms, with a prefix or without.
template <class D, Handler<D> kHandler>
Handler<D> SelectAlwaysMmx(const Insn&) {
  return &MmxInsn<D, kHandler>;
}

// Enters the selector of a legacy instruction and of its VEX forms, `vex` being
// their mnemonic: the legacy one behind a v.
template <class D>
void AddVec(HandlerTable<D>& table, std::string_view vex,
            Selector<D> selector) {
  table[vex.substr(1)] = selector;
  table[vex] = selector;
}

// An instruction with a form on XMM and one on MMX registers, whose memory
// source is kXmmBytes and kMmxBytes.
template <class D, VecOp kXmm, unsigned kXmmBytes, VecOp kMmx,
          unsigned kMmxBytes, bool kReadsDst, unsigned kVexLanes = 0>
Handler<D> SelectVecOrMmx(const Insn& insn) {
  return insn.op[0].is_mmx()
             ? SelectMmx<D, &VecInsn<D, kMmx, kMmxBytes, kReadsDst>>(insn)
             : SelectVec<D, kXmm, kXmmBytes, kReadsDst, kVexLanes>(insn);
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_INSN_SSE_COMMON_H_
