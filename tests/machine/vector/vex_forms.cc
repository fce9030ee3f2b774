#include "tests/machine/vector/sse_forms.h"

namespace clew::machine {
namespace {

using Bytes = std::initializer_list<uint8_t>;

constexpr uint8_t kVexVec = kRmXmm | kRmMem;
constexpr uint8_t kVexAligned = kRmXmm | kRmMemAligned;

// The vector lengths that a form has.
enum Lengths : uint8_t { k128 = 1, k256 = 2, kBoth = 3 };

// Whether VEX.vvvv is an operand.
enum class Vvvv : bool { kUnused, kOperand };
constexpr auto kTwo = Vvvv::kUnused;
constexpr auto kThree = Vvvv::kOperand;

class VexForms {
 public:
  void Add(SseForm form, Vvvv vvvv, Lengths lengths) {
    form.vvvv = vvvv == Vvvv::kOperand;
    for (const uint8_t lanes : {uint8_t{1}, uint8_t{2}}) {
      if ((lengths & lanes) != 0) {
        form.vex_lanes = lanes;
        forms_.push_back(form);
      }
    }
  }
  // Of prefix 66.
  void AddEach(OpcodeMap map, Bytes opcodes, uint8_t rm, Vvvv vvvv,
               Lengths lengths, bool w = false, ImmKind imm = ImmKind::kNone) {
    for (const uint8_t opcode : opcodes) {
      SseForm form = {0x66, map, opcode, rm, false, imm};
      form.rex_w = w;
      Add(form, vvvv, lengths);
    }
  }
  // The same, with an immediate.
  void AddEachImm(OpcodeMap map, Bytes opcodes, uint8_t rm, Vvvv vvvv,
                  Lengths lengths, bool w = false) {
    AddEach(map, opcodes, rm, vvvv, lengths, w, kEvery);
  }
  SseForms Take() { return std::move(forms_); }

 private:
  SseForms forms_;
};

void AddIntegerForms(VexForms& forms) {
  forms.AddEach(
      k0f,
      {0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b,
       0x6c, 0x6d, 0x74, 0x75, 0x76, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd8, 0xd9,
       0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5,
       0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef, 0xf1, 0xf2, 0xf3, 0xf4,
       0xf5, 0xf6, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe},
      kVexVec, kThree, kBoth);
  forms.AddEach(k0f38, {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                        0x09, 0x0a, 0x0b, 0x28, 0x29, 0x2b, 0x37, 0x38, 0x39,
                        0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f, 0x40},
                kVexVec, kThree, kBoth);
  // VPTEST, VPABSx, VPMOVSX, VPMOVZX; VPHMINPOSUW.
  forms.AddEach(k0f38,
                {0x17, 0x1c, 0x1d, 0x1e, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25,
                 0x30, 0x31, 0x32, 0x33, 0x34, 0x35},
                kVexVec, kTwo, kBoth);
  forms.AddEach(k0f38, {0x41}, kVexVec, kTwo, k128);
  // Shifts by an immediate; VEX.vvvv is the destination.
  for (const ShiftByImm& shift : kShiftsByImm) {
    forms.Add({0x66, k0f, shift.opcode, kRmXmm, false, kEvery, shift.field},
              kThree, kBoth);
  }
}

void AddShuffleForms(VexForms& forms) {
  for (const uint8_t prefix : Bytes{0x66, 0xf2, 0xf3}) {  // VPSHUFD, -LW, -HW
    forms.Add({prefix, k0f, 0x70, kVexVec, false, kEvery}, kTwo, kBoth);
  }
  for (const uint8_t prefix : Bytes{0, 0x66}) {
    forms.Add({prefix, k0f, 0xc6, kVexVec, false, kEvery}, kThree, kBoth);
    forms.Add({prefix, k0f, 0x50, kRmXmm, true}, kTwo, kBoth);  // VMOVMSKPx
  }
  // Blends, VPALIGNR, VMPSADBW, those with a mask register in the immediate.
  forms.AddEachImm(k0f3a, {0x0c, 0x0d, 0x0e, 0x0f, 0x42, 0x4a, 0x4b, 0x4c},
                   kVexVec, kThree, kBoth);
  for (const bool w : {false, true}) {  // VPCMPxSTRx; VPEXTRD/Q, VPINSRD/Q
    forms.AddEachImm(k0f3a, {0x60, 0x61, 0x62, 0x63}, kVexVec, kTwo, k128, w);
    forms.AddEachImm(k0f3a, {0x16}, kInteger, kTwo, k128, w);
    forms.AddEachImm(k0f3a, {0x22}, kInteger, kThree, k128, w);
  }
  forms.AddEachImm(k0f3a, {0x21}, kVexVec, kThree, k128);   // VINSERTPS
  forms.AddEachImm(k0f3a, {0x20}, kInteger, kThree, k128);  // VPINSRB
  forms.AddEachImm(k0f, {0xc4}, kInteger, kThree, k128);    // VPINSRW
  // VPEXTRB, VPEXTRW, VEXTRACTPS; VPEXTRW, VPMOVMSKB
  forms.AddEachImm(k0f3a, {0x14, 0x15, 0x17}, kInteger, kTwo, k128);
  forms.Add({0x66, k0f, 0xc5, kRmXmm, true, kEvery}, kTwo, k128);
  forms.Add({0x66, k0f, 0xd7, kRmXmm, true}, kTwo, kBoth);
}

void AddArithmeticForms(VexForms& forms) {
  for (const uint8_t prefix : Bytes{0, 0x66, 0xf2, 0xf3}) {
    const Lengths lengths = prefix < 0xf2 ? kBoth : k128;
    for (const uint8_t op : Bytes{0x58, 0x59, 0x5c, 0x5d, 0x5e, 0x5f}) {
      forms.Add({prefix, k0f, op, kVexVec}, kThree, lengths);
    }
    // VSQRTxx; VCMPxx
    forms.Add({prefix, k0f, 0x51, kVexVec}, prefix < 0xf2 ? kTwo : kThree,
              lengths);
    forms.Add({prefix, k0f, 0xc2, kVexVec, false, kEvery}, kThree, lengths);
  }
  for (const uint8_t prefix : Bytes{0, 0x66}) {
    for (const uint8_t op : Bytes{0x54, 0x55, 0x56, 0x57, 0x14, 0x15}) {
      forms.Add({prefix, k0f, op, kVexVec}, kThree, kBoth);
    }
    for (const uint8_t op : Bytes{0x2e, 0x2f}) {  // VUCOMISx, VCOMISx
      forms.Add({prefix, k0f, op, kVexVec}, kTwo, k128);
    }
  }
  for (const uint8_t prefix : Bytes{0x66, 0xf2}) {
    for (const uint8_t op : Bytes{0x7c, 0x7d, 0xd0}) {  // VHADD, VHSUB, VADDSUB
      forms.Add({prefix, k0f, op, kVexVec}, kThree, kBoth);
    }
  }
  forms.AddEachImm(k0f3a, {0x08, 0x09}, kVexVec, kTwo, kBoth);  // VROUNDPx
  forms.AddEachImm(k0f3a, {0x0a, 0x0b}, kVexVec, kThree, k128);
  forms.AddEachImm(k0f3a, {0x40}, kVexVec, kThree, kBoth);  // VDPPS, VDPPD
  forms.AddEachImm(k0f3a, {0x41}, kVexVec, kThree, k128);
}

void AddConversionForms(VexForms& forms) {
  forms.Add({0, k0f, 0x5a, kVexVec}, kTwo, kBoth);      // VCVTPS2PD
  forms.Add({0x66, k0f, 0x5a, kVexVec}, kTwo, kBoth);   // VCVTPD2PS
  forms.Add({0xf2, k0f, 0x5a, kVexVec}, kThree, k128);  // VCVTSD2SS
  forms.Add({0xf3, k0f, 0x5a, kVexVec}, kThree, k128);  // VCVTSS2SD
  for (const uint8_t prefix : Bytes{0, 0x66, 0xf3}) {   // between PS and DQ
    forms.Add({prefix, k0f, 0x5b, kVexVec}, kTwo, kBoth);
  }
  for (const uint8_t prefix : Bytes{0x66, 0xf2, 0xf3}) {  // between PD and DQ
    forms.Add({prefix, k0f, 0xe6, kVexVec}, kTwo, kBoth);
  }
  for (const uint8_t prefix : Bytes{0xf2, 0xf3}) {
    for (const bool w : {false, true}) {
      SseForm form = {prefix, k0f, 0x2a, kInteger};  // VCVTSI2Sx
      form.rex_w = w;
      forms.Add(form, kThree, k128);
      for (const uint8_t op : Bytes{0x2c, 0x2d}) {  // VCVTTSx2SI, VCVTSx2SI
        form = {prefix, k0f, op, kVexVec, true};
        form.rex_w = w;
        forms.Add(form, kTwo, k128);
      }
    }
  }
}

void AddMoveForms(VexForms& forms) {
  for (const uint8_t prefix : Bytes{0, 0x66}) {
    for (const uint8_t op : Bytes{0x10, 0x11}) {  // VMOVUPx
      forms.Add({prefix, k0f, op, kVexVec}, kTwo, kBoth);
    }
    for (const uint8_t op : Bytes{0x28, 0x29}) {  // VMOVAPx
      forms.Add({prefix, k0f, op, kVexAligned}, kTwo, kBoth);
    }
    forms.Add({prefix, k0f, 0x2b, kRmMemAligned}, kTwo, kBoth);  // VMOVNTPx
    for (const uint8_t op : Bytes{0x12, 0x16}) {  // VMOVLPx, VMOVHPx
      forms.Add({prefix, k0f, op, kRmMem}, kThree, k128);
      forms.Add({prefix, k0f, static_cast<uint8_t>(op + 1), kRmMem}, kTwo,
                k128);
    }
  }
  for (const uint8_t prefix : Bytes{0xf2, 0xf3}) {  // VMOVSD, VMOVSS
    for (const uint8_t op : Bytes{0x10, 0x11}) {
      forms.Add({prefix, k0f, op, kRmXmm}, kThree, k128);
      forms.Add({prefix, k0f, op, kRmMem}, kTwo, k128);
    }
  }
  for (const uint8_t op : Bytes{0x12, 0x16}) {  // VMOVHLPS, VMOVLHPS
    forms.Add({0, k0f, op, kRmXmm}, kThree, k128);
    forms.Add({0xf3, k0f, op, kVexVec}, kTwo, kBoth);  // VMOVSxDUP
  }
  forms.Add({0xf2, k0f, 0x12, kVexVec}, kTwo, kBoth);          // VMOVDDUP
  forms.AddEach(k0f, {0x6f, 0x7f}, kVexAligned, kTwo, kBoth);  // VMOVDQA
  for (const uint8_t op : Bytes{0x6f, 0x7f}) {                 // VMOVDQU
    forms.Add({0xf3, k0f, op, kVexVec}, kTwo, kBoth);
  }
  forms.AddEach(k0f, {0xe7}, kRmMemAligned, kTwo, kBoth);    // VMOVNTDQ
  forms.AddEach(k0f38, {0x2a}, kRmMemAligned, kTwo, kBoth);  // VMOVNTDQA
  forms.Add({0xf2, k0f, 0xf0, kRmMem}, kTwo, kBoth);         // VLDDQU
  forms.AddEach(k0f, {0xf7}, kRmXmm, kTwo, k128);            // VMASKMOVDQU
  forms.Add({0xf3, k0f, 0x7e, kVexVec}, kTwo, k128);         // VMOVQ
  forms.AddEach(k0f, {0xd6}, kVexVec, kTwo, k128);
  for (const bool w : {false, true}) {  // VMOVD, VMOVQ
    forms.AddEach(k0f, {0x6e, 0x7e}, kInteger, kTwo, k128, w);
  }
}

// Those that are no SSE form with another prefix.
void AddAvxForms(VexForms& forms) {
  // Broadcasts: VBROADCASTSS, VPBROADCASTD, -Q, -B, -W; VBROADCASTSD; -F128,
  // -I128.
  forms.AddEach(k0f38, {0x18, 0x58, 0x59, 0x78, 0x79}, kVexVec, kTwo, kBoth);
  forms.AddEach(k0f38, {0x19}, kVexVec, kTwo, k256);
  forms.AddEach(k0f38, {0x1a, 0x5a}, kRmMem, kTwo, k256);
  // VPERMILPx by an immediate and by a vector; VINSERTx128, VEXTRACTx128.
  forms.AddEachImm(k0f3a, {0x04, 0x05}, kVexVec, kTwo, kBoth);
  forms.AddEach(k0f38, {0x0c, 0x0d}, kVexVec, kThree, kBoth);
  forms.AddEachImm(k0f3a, {0x18, 0x38}, kVexVec, kThree, k256);
  forms.AddEachImm(k0f3a, {0x19, 0x39}, kVexVec, kTwo, k256);
  // VPERM2x128; VPERMQ, VPERMPD; VPERMD, VPERMPS; VPBLENDD.
  forms.AddEachImm(k0f3a, {0x06, 0x46}, kVexVec, kThree, k256);
  forms.AddEachImm(k0f3a, {0x00, 0x01}, kVexVec, kTwo, k256, true);
  forms.AddEach(k0f38, {0x36, 0x16}, kVexVec, kThree, k256);
  forms.AddEachImm(k0f3a, {0x02}, kVexVec, kThree, kBoth);
  for (const bool w : {false, true}) {  // VPSRLVx, VPSLLVx
    forms.AddEach(k0f38, {0x45, 0x47}, kVexVec, kThree, kBoth, w);
  }
  forms.AddEach(k0f38, {0x46}, kVexVec, kThree, kBoth);      // VPSRAVD
  forms.AddEach(k0f38, {0x0e, 0x0f}, kVexVec, kTwo, kBoth);  // VTESTPx
}

}  // namespace

SseForms AllVexForms() {
  VexForms forms;
  AddIntegerForms(forms);
  AddShuffleForms(forms);
  AddArithmeticForms(forms);
  AddConversionForms(forms);
  AddMoveForms(forms);
  AddAvxForms(forms);
  return forms.Take();
}

SseForms AllFusedForms() {
  VexForms forms;
  for (const bool w : {false, true}) {
    for (const uint8_t order : Bytes{0x90, 0xa0, 0xb0}) {  // 132, 213, 231
      // VFMADDSUB, VFMSUBADD; VFMADD, VFMSUB, VFNMADD, VFNMSUB
      for (const uint8_t op : Bytes{0x6, 0x7, 0x8, 0xa, 0xc, 0xe}) {
        const auto packed = static_cast<uint8_t>(order + op);
        forms.AddEach(k0f38, {packed}, kVexVec, kThree, kBoth, w);
        if (op >= 0x8) {
          const auto scalar = static_cast<uint8_t>(packed + 1);
          forms.AddEach(k0f38, {scalar}, kVexVec, kThree, k128, w);
        }
      }
    }
  }
  forms.AddEach(k0f38, {0x13}, kVexVec, kTwo, kBoth);     // VCVTPH2PS
  forms.AddEachImm(k0f3a, {0x1d}, kVexVec, kTwo, kBoth);  // VCVTPS2PH
  return forms.Take();
}

SseForms AllCryptoForms() {
  VexForms forms;  // AESENC and its kin, AESIMC; AESKEYGENASSIST, PCLMULQDQ
  forms.AddEach(k0f38, {0xdc, 0xdd, 0xde, 0xdf}, kVexVec, kThree, k128);
  forms.AddEach(k0f38, {0xdb}, kVexVec, kTwo, k128);
  forms.AddEachImm(k0f3a, {0xdf}, kVexVec, kTwo, k128);
  forms.AddEachImm(k0f3a, {0x44}, kVexVec, kThree, k128);
  SseForms result = forms.Take();
  for (SseForm form : SseForms(result)) {
    form.vex_lanes = 0;
    form.vvvv = false;
    form.rm = kVexAligned;
    result.push_back(form);
  }
  for (const uint8_t op : Bytes{0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd}) {  // SHA
    result.push_back({0, k0f38, op, kVexAligned});
  }
  result.push_back({0, k0f3a, 0xcc, kVexAligned, false, kEvery});  // SHA1RNDS4
  return result;
}

SseForms AllMaskedForms() {
  VexForms forms;
  forms.AddEach(k0f38, {0x2c, 0x2d, 0x2e, 0x2f}, kRmMem, kThree, kBoth);
  for (const bool w : {false, true}) {
    forms.AddEach(k0f38, {0x8c, 0x8e}, kRmMem, kThree, kBoth, w);
  }
  return forms.Take();
}

}  // namespace clew::machine
