#include "tests/machine/vector/sse_forms.h"

namespace clew::machine {
namespace {

constexpr uint8_t kMmx = kRmMmx | kRmMem;

// Of MMX, SSE and SSE2.
void AddMmxTwoByteForms(SseForms& forms) {
  for (const int op :
       {0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a,
        0x6b, 0x74, 0x75, 0x76, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd8, 0xd9,
        0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xe1, 0xe2, 0xe3, 0xe4,
        0xe5, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef, 0xf1, 0xf2,
        0xf3, 0xf4, 0xf5, 0xf6, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe}) {
    forms.push_back({0, k0f, static_cast<uint8_t>(op), kMmx});
  }
  // Shifts by an immediate.
  for (const ShiftByImm& shift : kShiftsByImm) {
    if (shift.of_bytes) {
      continue;
    }
    forms.push_back({0, k0f, shift.opcode, kRmMmx, false, kEvery, shift.field});
  }
  forms.push_back({0, k0f, 0x70, kMmx, false, kEvery});      // PSHUFW
  forms.push_back({0, k0f, 0xc4, kInteger, false, kEvery});  // PINSRW
  forms.push_back({0, k0f, 0xc5, kRmMmx, true, kEvery});     // PEXTRW
  forms.push_back({0, k0f, 0xd7, kRmMmx, true});             // PMOVMSKB
}

void AddMmxSsse3Forms(SseForms& forms) {
  for (const int op : {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                       0x09, 0x0a, 0x0b, 0x1c, 0x1d, 0x1e}) {
    forms.push_back({0, k0f38, static_cast<uint8_t>(op), kMmx});
  }
  forms.push_back({0, k0f3a, 0x0f, kMmx, false, kEvery});  // PALIGNR
}

void AddMmxConversionForms(SseForms& forms) {
  forms.push_back({0, k0f, 0x2a, kMmx});     // CVTPI2PS
  forms.push_back({0x66, k0f, 0x2a, kMmx});  // CVTPI2PD
  for (const int op : {0x2c, 0x2d}) {        // CVTTPx2PI, CVTPx2PI
    const auto opcode = static_cast<uint8_t>(op);
    forms.push_back({0, k0f, opcode, kRmXmm | kRmMem});
    forms.push_back({0x66, k0f, opcode, kRmXmm | kRmMemAligned});
  }
}

void AddMmxMoveForms(SseForms& forms) {
  for (const bool rex_w : {false, true}) {  // MOVD, MOVQ
    for (const int op : {0x6e, 0x7e}) {
      forms.push_back({0, k0f, static_cast<uint8_t>(op), kInteger, false,
                       ImmKind::kNone, std::nullopt, rex_w});
    }
  }
  forms.push_back({0, k0f, 0x6f, kMmx});       // MOVQ
  forms.push_back({0, k0f, 0x7f, kMmx});       // MOVQ
  forms.push_back({0, k0f, 0xe7, kRmMem});     // MOVNTQ
  forms.push_back({0, k0f, 0xf7, kRmMmx});     // MASKMOVQ
  forms.push_back({0xf2, k0f, 0xd6, kRmXmm});  // MOVDQ2Q
  forms.push_back({0xf3, k0f, 0xd6, kRmMmx});  // MOVQ2DQ
}

}  // namespace

SseForms AllMmxForms() {
  SseForms forms;
  AddMmxTwoByteForms(forms);
  AddMmxSsse3Forms(forms);
  AddMmxConversionForms(forms);
  AddMmxMoveForms(forms);
  return forms;
}

}  // namespace clew::machine
