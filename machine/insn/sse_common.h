#ifndef CLEW_MACHINE_INSN_SSE_COMMON_H_
#define CLEW_MACHINE_INSN_SSE_COMMON_H_

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

// A source: an XMM or MMX register whole; of memory or a general register
// kBytes, in the low bits. 16 bytes of memory must be aligned.
template <unsigned kBytes, class D>
Vec128 ReadSource(Cpu<D>& cpu, const Insn& insn, const Operand& operand) {
  if constexpr (kBytes == 16) {
    return cpu.ReadVec(insn, operand);
  } else {
    if (operand.is_vec() || operand.is_mmx()) {
      return cpu.ReadVec(insn, operand);
    }
    using U = typename UnsignedOf<kBytes>::Type;
    return {{cpu.d().Concretise(cpu.template Read<U>(insn, operand)), 0}};
  }
}

template <class D>
VecState StateFor(Cpu<D>& cpu, const Insn& insn) {
  VecState state;
  state.mxcsr = cpu.regs().mxcsr;
  state.imm = static_cast<uint8_t>(insn.imm);
  return state;
}

// op[0] = kOp(op[0], op[1]), op[0] an XMM or MMX register.
template <class D, VecOp kOp, unsigned kBytes, bool kReadsDst>
void VecInsn(Cpu<D>& cpu, const Insn& insn) {
  const Vec128 src = ReadSource<kBytes>(cpu, insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  Vec128 dst;
  if constexpr (kReadsDst) {
    dst = cpu.ReadVec(insn, insn.op[0]);
  }
  VecState state = StateFor(cpu, insn);
  kOp(dst, src, state);
  cpu.regs().mxcsr = state.mxcsr;
  cpu.WriteVec(insn, insn.op[0], dst);
}

// A general register = kOp(op[1]).
template <class D, VecToGprOp kOp, unsigned kBytes>
void ToGprInsn(Cpu<D>& cpu, const Insn& insn) {
  const Vec128 src = ReadSource<kBytes>(cpu, insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  VecState state = StateFor(cpu, insn);
  const uint64_t value = kOp(src, state);
  cpu.regs().mxcsr = state.mxcsr;
  cpu.template SetReg<uint64_t>(insn.op[0].reg, cpu.d().Const(value));
}

// Flags = kOp(op[0], op[1]).
template <class D, VecToFlagsOp kOp, unsigned kBytes>
void ToFlagsInsn(Cpu<D>& cpu, const Insn& insn) {
  const Vec128 src = ReadSource<kBytes>(cpu, insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  VecState state = StateFor(cpu, insn);
  const uint64_t flags = kOp(cpu.ReadVec(insn, insn.op[0]), src, state);
  cpu.regs().mxcsr = state.mxcsr;
  cpu.flags().SetAll(flags);
}

inline bool HasMmx(const Insn& insn) {
  return insn.op[0].is_mmx() || insn.op[1].is_mmx();
}

template <class D, Handler<D> kHandler>
Handler<D> SelectSse(const Insn& insn) {
  return HasMmx(insn) ? nullptr : kHandler;
}

template <class D, VecOp kOp, unsigned kBytes, bool kReadsDst>
Handler<D> SelectVec(const Insn& insn) {
  return insn.op[0].is_vec() && !HasMmx(insn)
             ? &VecInsn<D, kOp, kBytes, kReadsDst>
             : nullptr;
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

// An instruction with a form on XMM and one on MMX registers, whose memory
// source is kXmmBytes and kMmxBytes.
template <class D, VecOp kXmm, unsigned kXmmBytes, VecOp kMmx,
          unsigned kMmxBytes, bool kReadsDst>
Handler<D> SelectVecOrMmx(const Insn& insn) {
  return insn.op[0].is_mmx()
             ? SelectMmx<D, &VecInsn<D, kMmx, kMmxBytes, kReadsDst>>(insn)
             : SelectVec<D, kXmm, kXmmBytes, kReadsDst>(insn);
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_INSN_SSE_COMMON_H_
