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

// A source: an XMM register whole; of memory or a general register kBytes, in
// the low bits. 16 bytes of memory must be aligned.
template <unsigned kBytes, class D>
Vec128 ReadSource(Cpu<D>& cpu, const Insn& insn, const Operand& operand) {
  if constexpr (kBytes == 16) {
    return cpu.ReadVec(insn, operand);
  } else {
    if (operand.is_xmm()) {
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

// op[0] = kOp(op[0], op[1]), op[0] an XMM register.
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

// No operand is an MMX register.
inline bool WithoutMmx(const Insn& insn) {
  return insn.op[0].kind != OperandKind::kOther &&
         insn.op[1].kind != OperandKind::kOther;
}

template <class D, Handler<D> kHandler>
Handler<D> SelectSse(const Insn& insn) {
  return WithoutMmx(insn) ? kHandler : nullptr;
}

template <class D, VecOp kOp, unsigned kBytes, bool kReadsDst>
Handler<D> SelectVec(const Insn& insn) {
  return insn.op[0].is_xmm() && WithoutMmx(insn)
             ? &VecInsn<D, kOp, kBytes, kReadsDst>
             : nullptr;
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_INSN_SSE_COMMON_H_
