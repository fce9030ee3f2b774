// PCMPESTRI, PCMPESTRM, PCMPISTRI, PCMPISTRM. Their memory operand need not be
// aligned (Intel SDM vol. 2, "PCMPESTRI").

#include "machine/insn/sse_common.h"
#include "machine/vector/string_compare.h"

namespace clew::machine {
namespace {

template <class D>
int64_t ExplicitLength(Cpu<D>& cpu, const Insn& insn, Gpr gpr) {
  const auto value =
      cpu.d().Concretise(cpu.template GetReg<uint64_t>(8u * gpr));
  return insn.rex_w ? static_cast<int64_t>(value) : static_cast<int32_t>(value);
}

template <class D, bool kExplicit, bool kIndex>
void StringInsn(Cpu<D>& cpu, const Insn& insn) {
  const Vec128 b = cpu.ReadVec(insn, insn.op[1], /*unaligned=*/true);
  if (cpu.faulted()) {
    return;
  }
  const Vec128 a = cpu.ReadVec(insn, insn.op[0]);
  const auto imm = static_cast<uint8_t>(insn.imm);
  const StringCompare result =
      kExplicit ? CompareExplicit(a, ExplicitLength(cpu, insn, kRax), b,
                                  ExplicitLength(cpu, insn, kRdx), imm)
                : CompareImplicit(a, b, imm);
  if (kIndex) {
    cpu.template SetReg<uint64_t>(8 * kRcx, cpu.d().Const(result.index));
  } else {
    cpu.WriteVec(insn, Operand{OperandKind::kVec, 16, 0}, result.mask);
  }
  cpu.flags().SetAll(result.flags);
}

}  // namespace

template <class D>
void RegisterSseString(HandlerTable<D>& table) {
  table["pcmpestri"] = SelectSse<D, &StringInsn<D, true, true>>;
  table["pcmpestrm"] = SelectSse<D, &StringInsn<D, true, false>>;
  table["pcmpistri"] = SelectSse<D, &StringInsn<D, false, true>>;
  table["pcmpistrm"] = SelectSse<D, &StringInsn<D, false, false>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterSseString);

}  // namespace clew::machine
