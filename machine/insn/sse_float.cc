// Floating point arithmetic, comparison and conversion on XMM registers;
// conversion from and to MMX registers.

#include "machine/insn/sse_common.h"
#include "machine/vector/float.h"

namespace clew::machine {
namespace {

// The general register or memory is 8 bytes wide with REX.W, 4 without.
template <class D, VecOp k32, VecOp k64>
Handler<D> SelectFromInteger(const Insn& insn) {
  return insn.rex_w ? SelectVec<D, k64, 8, true, 1>(insn)
                    : SelectVec<D, k32, 4, true, 1>(insn);
}

template <class D, VecToGprOp k32, VecToGprOp k64, unsigned kBytes>
Handler<D> SelectToInteger(const Insn& insn) {
  return insn.rex_w ? SelectFormless<D, 1, &ToGprInsn<D, k64, kBytes>>(insn)
                    : SelectFormless<D, 1, &ToGprInsn<D, k32, kBytes>>(insn);
}

// A form of 256 bits that halves its elements: what kOp makes of a lane has
// half its size, and is a half of the low lane.
template <class D, VecOp kOp>
void NarrowInsn(Cpu<D>& cpu, const Insn& insn) {
  const auto src = cpu.template ReadLanes<kVex256>(insn, insn.op[1]);
  if (cpu.faulted()) {
    return;
  }
  VecState state = StateFor(cpu, insn);
  Vec128 value;
  for (unsigned lane = 0; lane < src.size(); ++lane) {
    Vec128 half;
    kOp(half, src[lane], state);
    value.q[lane] = half.q[0];
  }
  cpu.regs().mxcsr = state.mxcsr;
  cpu.template WriteLanes<kVex128>(insn, insn.op[0], {value});
}

template <class D, VecOp kOp>
Handler<D> SelectNarrow(const Insn& insn) {
  return insn.vector_bytes == kVex256.size_bytes()
             ? &NarrowInsn<D, kOp>
             : SelectVec<D, kOp, 16, false, 1>(insn);
}

template <class D>
void RegisterConversions(HandlerTable<D>& table) {
  AddVec<D>(table, "vcvtsi2ss", SelectFromInteger<D, Cvtsi2ss32, Cvtsi2ss64>);
  AddVec<D>(table, "vcvtsi2sd", SelectFromInteger<D, Cvtsi2sd32, Cvtsi2sd64>);
  AddVec<D>(table, "vcvtss2si", SelectToInteger<D, Cvtss2si32, Cvtss2si64, 4>);
  AddVec<D>(table, "vcvtsd2si", SelectToInteger<D, Cvtsd2si32, Cvtsd2si64, 8>);
  AddVec<D>(table, "vcvttss2si",
            SelectToInteger<D, Cvttss2si32, Cvttss2si64, 4>);
  AddVec<D>(table, "vcvttsd2si",
            SelectToInteger<D, Cvttsd2si32, Cvttsd2si64, 8>);
  AddVec<D>(table, "vcvtpd2ps", SelectNarrow<D, Cvtpd2ps>);
  AddVec<D>(table, "vcvtpd2dq", SelectNarrow<D, Cvtpd2dq>);
  AddVec<D>(table, "vcvttpd2dq", SelectNarrow<D, Cvttpd2dq>);
  // As Capstone calls those of 128 bits in memory.
  table["vcvtpd2psx"] = SelectNarrow<D, Cvtpd2ps>;
  table["vcvtpd2dqx"] = SelectNarrow<D, Cvtpd2dq>;
  table["vcvttpd2dqx"] = SelectNarrow<D, Cvttpd2dq>;
}

// CVTPI2PS and CVTPI2PD from memory have no MMX register and leave the x87
// state alone.
template <class D, VecOp kOp, bool kReadsDst>
Handler<D> SelectFromMmx(const Insn& insn) {
  constexpr Handler<D> kConvert = &VecInsn<D, kOp, 8, kReadsDst>;
  return HasMmx(insn) ? &MmxInsn<D, kConvert> : kConvert;
}

template <class D>
void RegisterMmxConversions(HandlerTable<D>& table) {
  table["cvtpi2ps"] = SelectFromMmx<D, mmx::Cvtpi2ps, true>;
  table["cvtps2pi"] = SelectMmx<D, &VecInsn<D, mmx::Cvtps2pi, 8, false>>;
  table["cvttps2pi"] = SelectMmx<D, &VecInsn<D, mmx::Cvttps2pi, 8, false>>;
  table["cvtpi2pd"] = SelectFromMmx<D, mmx::Cvtpi2pd, false>;
  table["cvtpd2pi"] = SelectAlwaysMmx<D, &VecInsn<D, mmx::Cvtpd2pi, 16, false>>;
  table["cvttpd2pi"] =
      SelectAlwaysMmx<D, &VecInsn<D, mmx::Cvttpd2pi, 16, false>>;
}

template <class D>
void RegisterComparisons(HandlerTable<D>& table) {
  table["cmpps"] = SelectVec<D, Cmpps, 16, true>;
  table["cmppd"] = SelectVec<D, Cmppd, 16, true>;
  table["cmpss"] = SelectVec<D, Cmpss, 4, true>;
  table["cmpsd"] = SelectVec<D, Cmpsd, 8, true>;
  table["vcmpps"] = SelectVec<D, Vcmpps, 16, true, 2>;
  table["vcmppd"] = SelectVec<D, Vcmppd, 16, true, 2>;
  table["vcmpss"] = SelectVec<D, Vcmpss, 4, true, 1>;
  table["vcmpsd"] = SelectVec<D, Vcmpsd, 8, true, 1>;
  AddVec<D>(table, "vucomiss", kToFlags<D, Ucomiss, 4, 1>);
  AddVec<D>(table, "vucomisd", kToFlags<D, Ucomisd, 8, 1>);
  AddVec<D>(table, "vcomiss", kToFlags<D, Comiss, 4, 1>);
  AddVec<D>(table, "vcomisd", kToFlags<D, Comisd, 8, 1>);
}

}  // namespace

template <class D>
void RegisterSseFloat(HandlerTable<D>& table) {
#define CLEW_REGISTER(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  AddVec<D>(table, "v" mnemonic,                                   \
            SelectVec<D, Name, bytes, reads_dst, vex_lanes>);
  CLEW_VECTOR_FLOAT_OPS(CLEW_REGISTER)
  CLEW_VECTOR_APPROXIMATE_OPS(CLEW_REGISTER)
  CLEW_VECTOR_FLOAT_IMM_OPS(CLEW_REGISTER)
#undef CLEW_REGISTER
  RegisterConversions(table);
  RegisterMmxConversions(table);
  RegisterComparisons(table);
}

CLEW_INSTANTIATE_FAMILY(RegisterSseFloat);

}  // namespace clew::machine
