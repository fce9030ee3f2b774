#include "tests/machine/vector/sse_forms.h"

namespace clew::machine {
namespace {

constexpr uint8_t kVexVec = kRmXmm | kRmMem;
constexpr uint8_t kVexAligned = kRmXmm | kRmMemAligned;

// A VEX form, in all vector lengths that it has.
struct VexRow {
  SseForm form;
  bool vvvv;      // has a first source beside the destination
  uint8_t lanes;  // 1: of 128 bits only; 2: of 256 bits too
};

constexpr VexRow kVexRows[] = {
    {{0x66, k0f, 0xd4, kVexVec}, true, 2},       // VPADDQ
    {{0x66, k0f, 0xef, kVexVec}, true, 2},       // VPXOR
    {{0x66, k0f, 0xfc, kVexVec}, true, 2},       // VPADDB
    {{0x66, k0f, 0xfd, kVexVec}, true, 2},       // VPADDW
    {{0x66, k0f, 0xfe, kVexVec}, true, 2},       // VPADDD
    {{0x66, k0f, 0x6f, kVexAligned}, false, 2},  // VMOVDQA
    {{0x66, k0f, 0x7f, kVexAligned}, false, 2},
    {{0xf3, k0f, 0x6f, kVexVec}, false, 2},  // VMOVDQU
    {{0xf3, k0f, 0x7f, kVexVec}, false, 2},
};

}  // namespace

SseForms AllVexForms() {
  SseForms forms;
  for (const VexRow& row : kVexRows) {
    for (uint8_t lanes = 1; lanes <= row.lanes; ++lanes) {
      SseForm form = row.form;
      form.vex_lanes = lanes;
      form.vvvv = row.vvvv;
      forms.push_back(form);
    }
  }
  return forms;
}

}  // namespace clew::machine
