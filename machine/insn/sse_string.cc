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

template <class D, bool kExplicit, bool kIndex, VecForm kForm>
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
    cpu.template WriteLanes<kForm>(insn, kXmm0, {result.mask});
  }
  cpu.flags().SetAll(result.flags);
}

template <class D, bool kExplicit, bool kIndex>
constexpr Selector<D> kString =
    SelectByForm<D, 1, []<VecForm kForm>() -> Handler<D> {
      return &StringInsn<D, kExplicit, kIndex, kForm>;
    }>;

}  // namespace

template <class D>
void RegisterSseString(HandlerTable<D>& table) {
  AddVec<D>(table, "vpcmpestri", kString<D, true, true>);
  AddVec<D>(table, "vpcmpestrm", kString<D, true, false>);
  AddVec<D>(table, "vpcmpistri", kString<D, false, true>);
  AddVec<D>(table, "vpcmpistrm", kString<D, false, false>);
}

CLEW_INSTANTIATE_FAMILY(RegisterSseString);

}  // namespace clew::machine
