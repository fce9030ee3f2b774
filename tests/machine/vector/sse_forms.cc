#include "tests/machine/vector/sse_forms.h"

#include <array>

#include "common/inputs.h"

namespace clew::machine {
namespace {

constexpr uint8_t kVec = kRmXmm | kRmMemAligned;
constexpr uint8_t kScalar = kRmXmm | kRmMem;

void AddIntegerForms(SseForms& forms) {
  for (const int op :
       {0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b,
        0x6c, 0x6d, 0x74, 0x75, 0x76, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd8, 0xd9,
        0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5,
        0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef, 0xf1, 0xf2, 0xf3, 0xf4,
        0xf5, 0xf6, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe}) {
    forms.push_back({0x66, k0f, static_cast<uint8_t>(op), kVec});
  }
  for (const int op :
       {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a,
        0x0b, 0x10, 0x14, 0x15, 0x17, 0x1c, 0x1d, 0x1e, 0x28, 0x29, 0x2b,
        0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f, 0x40, 0x41}) {
    forms.push_back({0x66, k0f38, static_cast<uint8_t>(op), kVec});
  }
  for (const int op : {0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x30, 0x31, 0x32,
                       0x33, 0x34, 0x35}) {  // PMOVSX, PMOVZX
    forms.push_back({0x66, k0f38, static_cast<uint8_t>(op), kScalar});
  }
  // Shifts by an immediate.
  for (const ShiftByImm& shift : kShiftsByImm) {
    forms.push_back(
        {0x66, k0f, shift.opcode, kRmXmm, false, kEvery, shift.field});
  }
}

void AddShuffleForms(SseForms& forms) {
  for (const int prefix : {0x66, 0xf2, 0xf3}) {  // PSHUFD, PSHUFLW, PSHUFHW
    forms.push_back(
        {static_cast<uint8_t>(prefix), k0f, 0x70, kVec, false, kEvery});
  }
  forms.push_back({0, k0f, 0xc6, kVec, false, kEvery});     // SHUFPS
  forms.push_back({0x66, k0f, 0xc6, kVec, false, kEvery});  // SHUFPD
  for (const int op : {0x0c, 0x0d, 0x0e, 0x0f, 0x42}) {     // blends, PALIGNR,
    forms.push_back({0x66, k0f3a, static_cast<uint8_t>(op), kVec, false,
                     kEvery});  // MPSADBW
  }
  for (const int op : {0x60, 0x61, 0x62, 0x63}) {  // PCMPxSTRx
    for (const bool rex_w : {false, true}) {
      forms.push_back({0x66, k0f3a, static_cast<uint8_t>(op), kScalar, false,
                       kEvery, std::nullopt, rex_w});
    }
  }
  forms.push_back({0x66, k0f3a, 0x21, kScalar, false, kEvery});   // INSERTPS
  forms.push_back({0x66, k0f, 0xc4, kInteger, false, kEvery});    // PINSRW
  forms.push_back({0x66, k0f3a, 0x20, kInteger, false, kEvery});  // PINSRB
  forms.push_back({0x66, k0f, 0xc5, kRmXmm, true, kEvery});       // PEXTRW
  for (const int op : {0x14, 0x15, 0x17}) {  // PEXTRB, PEXTRW, EXTRACTPS
    forms.push_back(
        {0x66, k0f3a, static_cast<uint8_t>(op), kInteger, false, kEvery});
  }
  for (const bool rex_w : {false, true}) {  // PEXTRD/Q, PINSRD/Q
    forms.push_back(
        {0x66, k0f3a, 0x16, kInteger, false, kEvery, std::nullopt, rex_w});
    forms.push_back(
        {0x66, k0f3a, 0x22, kInteger, false, kEvery, std::nullopt, rex_w});
  }
  forms.push_back({0x66, k0f, 0xd7, kRmXmm, true});  // PMOVMSKB
  forms.push_back({0, k0f, 0x50, kRmXmm, true});     // MOVMSKPS
  forms.push_back({0x66, k0f, 0x50, kRmXmm, true});  // MOVMSKPD
}

void AddArithmeticForms(SseForms& forms) {
  for (const int op : {0x51, 0x58, 0x59, 0x5c, 0x5d, 0x5e, 0x5f}) {
    for (const int prefix : {0, 0x66, 0xf2, 0xf3}) {
      forms.push_back({static_cast<uint8_t>(prefix), k0f,
                       static_cast<uint8_t>(op),
                       prefix == 0 || prefix == 0x66 ? kVec : kScalar});
    }
  }
  for (const int op : {0x54, 0x55, 0x56, 0x57, 0x14, 0x15}) {  // logic, UNPCK
    forms.push_back({0, k0f, static_cast<uint8_t>(op), kVec});
    forms.push_back({0x66, k0f, static_cast<uint8_t>(op), kVec});
  }
  for (const int op : {0x7c, 0x7d, 0xd0}) {  // HADD, HSUB, ADDSUB
    forms.push_back({0x66, k0f, static_cast<uint8_t>(op), kVec});
    forms.push_back({0xf2, k0f, static_cast<uint8_t>(op), kVec});
  }
  for (const int prefix : {0, 0x66, 0xf2, 0xf3}) {  // CMPxx
    forms.push_back({static_cast<uint8_t>(prefix), k0f, 0xc2,
                     prefix == 0 || prefix == 0x66 ? kVec : kScalar, false,
                     kEvery});
  }
  for (const int op : {0x2e, 0x2f}) {  // UCOMISx, COMISx
    forms.push_back({0, k0f, static_cast<uint8_t>(op), kScalar});
    forms.push_back({0x66, k0f, static_cast<uint8_t>(op), kScalar});
  }
  for (const int op : {0x08, 0x09, 0x40, 0x41}) {  // ROUNDPx, DPPx
    forms.push_back(
        {0x66, k0f3a, static_cast<uint8_t>(op), kVec, false, kEvery});
  }
  for (const int op : {0x0a, 0x0b}) {  // ROUNDSx
    forms.push_back(
        {0x66, k0f3a, static_cast<uint8_t>(op), kScalar, false, kEvery});
  }
}

void AddConversionForms(SseForms& forms) {
  forms.push_back({0, k0f, 0x5a, kScalar});     // CVTPS2PD
  forms.push_back({0x66, k0f, 0x5a, kVec});     // CVTPD2PS
  forms.push_back({0xf2, k0f, 0x5a, kScalar});  // CVTSD2SS
  forms.push_back({0xf3, k0f, 0x5a, kScalar});  // CVTSS2SD
  forms.push_back({0, k0f, 0x5b, kVec});        // CVTDQ2PS
  forms.push_back({0x66, k0f, 0x5b, kVec});     // CVTPS2DQ
  forms.push_back({0xf3, k0f, 0x5b, kVec});     // CVTTPS2DQ
  forms.push_back({0x66, k0f, 0xe6, kVec});     // CVTTPD2DQ
  forms.push_back({0xf2, k0f, 0xe6, kVec});     // CVTPD2DQ
  forms.push_back({0xf3, k0f, 0xe6, kScalar});  // CVTDQ2PD
  for (const int prefix : {0xf2, 0xf3}) {
    for (const bool rex_w : {false, true}) {
      const auto p = static_cast<uint8_t>(prefix);
      forms.push_back({p, k0f, 0x2a, kInteger, false, ImmKind::kNone,
                       std::nullopt, rex_w});  // CVTSI2Sx
      forms.push_back({p, k0f, 0x2c, kScalar, true, ImmKind::kNone,
                       std::nullopt, rex_w});  // CVTTSx2SI
      forms.push_back({p, k0f, 0x2d, kScalar, true, ImmKind::kNone,
                       std::nullopt, rex_w});  // CVTSx2SI
    }
  }
}

void AddMoveForms(SseForms& forms) {
  for (const int prefix : {0, 0x66, 0xf2, 0xf3}) {
    const auto p = static_cast<uint8_t>(prefix);
    forms.push_back({p, k0f, 0x10, kScalar});  // MOVUPS, UPD, SD, SS
    forms.push_back({p, k0f, 0x11, kScalar});
  }
  for (const int prefix : {0, 0x66}) {
    const auto p = static_cast<uint8_t>(prefix);
    forms.push_back({p, k0f, 0x28, kVec});  // MOVAPx
    forms.push_back({p, k0f, 0x29, kVec});
    forms.push_back({p, k0f, 0x2b, kRmMemAligned});  // MOVNTPx
    forms.push_back({p, k0f, 0x12, kRmMem});         // MOVLPx
    forms.push_back({p, k0f, 0x13, kRmMem});
    forms.push_back({p, k0f, 0x16, kRmMem});  // MOVHPx
    forms.push_back({p, k0f, 0x17, kRmMem});
  }
  forms.push_back({0, k0f, 0x12, kRmXmm});      // MOVHLPS
  forms.push_back({0, k0f, 0x16, kRmXmm});      // MOVLHPS
  forms.push_back({0xf2, k0f, 0x12, kScalar});  // MOVDDUP
  forms.push_back({0xf3, k0f, 0x12, kVec});     // MOVSLDUP
  forms.push_back({0xf3, k0f, 0x16, kVec});     // MOVSHDUP
  forms.push_back({0x66, k0f, 0x6f, kVec});     // MOVDQA
  forms.push_back({0x66, k0f, 0x7f, kVec});
  forms.push_back({0xf3, k0f, 0x6f, kScalar});  // MOVDQU
  forms.push_back({0xf3, k0f, 0x7f, kScalar});
  forms.push_back({0x66, k0f, 0xe7, kRmMemAligned});    // MOVNTDQ
  forms.push_back({0x66, k0f38, 0x2a, kRmMemAligned});  // MOVNTDQA
  forms.push_back({0xf2, k0f, 0xf0, kRmMem});           // LDDQU
  forms.push_back({0x66, k0f, 0xf7, kRmXmm});           // MASKMOVDQU
  forms.push_back({0xf3, k0f, 0x7e, kScalar});          // MOVQ
  forms.push_back({0x66, k0f, 0xd6, kScalar});
  for (const bool rex_w : {false, true}) {  // MOVNTI; MOVD, MOVQ
    forms.push_back(
        {0, k0f, 0xc3, kRmMem, true, ImmKind::kNone, std::nullopt, rex_w});
    for (const int op : {0x6e, 0x7e}) {
      forms.push_back({0x66, k0f, static_cast<uint8_t>(op), kInteger, false,
                       ImmKind::kNone, std::nullopt, rex_w});
    }
  }
}

// Prefix, REX and opcode.
std::vector<uint8_t> LegacyOpcode(const SseForm& form, Choice choice) {
  std::vector<uint8_t> code;
  if (form.prefix != 0) {
    code.push_back(form.prefix);
  }
  const unsigned rex = (form.rex_w ? 8u : 0u) | (choice.reg >= 8 ? 4u : 0u) |
                       (!choice.memory && choice.rm >= 8 ? 1u : 0u);
  if (rex != 0) {
    code.push_back(static_cast<uint8_t>(0x40 | rex));
  }
  code.push_back(0x0f);
  if (form.map != OpcodeMap::k0f) {
    code.push_back(form.map == OpcodeMap::k0f38 ? 0x38 : 0x3a);
  }
  code.push_back(form.opcode);
  return code;
}

// VEX.pp for a prefix.
unsigned PpOf(uint8_t prefix) {
  return prefix == 0x66 ? 1 : prefix == 0xf3 ? 2 : prefix == 0xf2 ? 3 : 0;
}

// VEX, of two bytes where that is possible, and opcode. R, X, B and vvvv are
// inverted.
std::vector<uint8_t> VexOpcode(const SseForm& form, Choice choice) {
  const unsigned r = choice.reg >= 8 ? 0 : 0x80;
  const unsigned b = !choice.memory && choice.rm >= 8 ? 0 : 0x20;
  const unsigned vvvv = form.vvvv ? choice.vvvv : 0u;
  const unsigned last =
      (~vvvv & 15u) << 3 | (form.vex_lanes == 2 ? 4u : 0u) | PpOf(form.prefix);
  if (form.map == OpcodeMap::k0f && b != 0 && !form.rex_w) {
    return {0xc5, static_cast<uint8_t>(r | last), form.opcode};
  }
  const unsigned map = 1 + static_cast<unsigned>(form.map);
  return {0xc4, static_cast<uint8_t>(r | 0x40 | b | map),
          static_cast<uint8_t>((form.rex_w ? 0x80u : 0u) | last), form.opcode};
}

// With a first source in turn: the destination, the second source, others; all
// of them for the first choice.
std::vector<Choice> WithVvvv(const std::vector<Choice>& choices) {
  std::vector<Choice> result;
  for (size_t i = 0; i < choices.size() + 3; ++i) {
    Choice choice = choices[i < 4 ? 0 : i - 3];
    const std::array<uint8_t, 4> sources = {choice.reg, choice.rm, 6, 13};
    choice.vvvv = sources[i % sources.size()];
    result.push_back(choice);
  }
  return result;
}

}  // namespace

SseForms AllSseForms() {
  SseForms forms;
  AddIntegerForms(forms);
  AddShuffleForms(forms);
  AddArithmeticForms(forms);
  AddConversionForms(forms);
  AddMoveForms(forms);
  return forms;
}

std::vector<uint8_t> Encode(const SseForm& form, Choice choice, uint8_t imm) {
  std::vector<uint8_t> code = form.vex_lanes != 0 ? VexOpcode(form, choice)
                                                  : LegacyOpcode(form, choice);
  const unsigned reg = form.reg_field.value_or(choice.reg) & 7u;
  const unsigned rm = choice.memory ? unsigned{kRsi} : choice.rm & 7u;
  code.push_back(
      static_cast<uint8_t>((choice.memory ? 0u : 0xc0u) | reg << 3 | rm));
  if (form.imm == ImmKind::kEvery) {
    code.push_back(imm);
  }
  return code;
}

std::vector<Choice> ChoicesFor(const SseForm& form) {
  std::vector<Choice> choices;
  if ((form.rm & (kRmXmm | kRmGpr)) != 0) {
    choices = {{1, 2, false}, {3, 11, false}, {9, 2, false}, {15, 8, false}};
    if (!form.reg_is_gpr && (form.rm & kRmXmm) != 0) {
      choices.push_back({5, 5, false});
      choices.push_back({0, 7, false});
    }
  }
  if ((form.rm & kRmMmx) != 0) {
    choices = {{1, 2, false}, {3, 7, false}, {9, 2, false}, {14, 12, false}};
    if (!form.reg_is_gpr) {
      choices.push_back({5, 5, false});
    }
  }
  if ((form.rm & (kRmMem | kRmMemAligned)) != 0) {
    choices.push_back({1, 0, true});
    choices.push_back({10, 0, true});
  }
  return form.vvvv ? WithVvvv(choices) : choices;
}

}  // namespace clew::machine
