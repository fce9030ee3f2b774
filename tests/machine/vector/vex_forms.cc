#include "tests/machine/vector/sse_forms.h"

namespace clew::machine {
namespace {

constexpr uint8_t kVec = kRmXmm | kRmMem;
constexpr uint8_t kAligned = kRmXmm | kRmMemAligned;
constexpr auto k0f = OpcodeMap::k0f;

// A VEX form, in all vector lengths that it has.
struct Row {
  SseForm form;
  bool vvvv;      // has a first source beside the destination
  uint8_t lanes;  // 1: of 128 bits only; 2: of 256 bits too
};

constexpr Row kRows[] = {
    {{0x66, k0f, 0xd4, kVec}, true, 2},       // VPADDQ
    {{0x66, k0f, 0xef, kVec}, true, 2},       // VPXOR
    {{0x66, k0f, 0xfc, kVec}, true, 2},       // VPADDB
    {{0x66, k0f, 0xfd, kVec}, true, 2},       // VPADDW
    {{0x66, k0f, 0xfe, kVec}, true, 2},       // VPADDD
    {{0x66, k0f, 0x6f, kAligned}, false, 2},  // VMOVDQA
    {{0x66, k0f, 0x7f, kAligned}, false, 2},
    {{0xf3, k0f, 0x6f, kVec}, false, 2},  // VMOVDQU
    {{0xf3, k0f, 0x7f, kVec}, false, 2},
};

}  // namespace

std::vector<SseForm> AllVexForms() {
  std::vector<SseForm> forms;
  for (const Row& row : kRows) {
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
