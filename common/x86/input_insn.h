#ifndef CLEW_COMMON_X86_INPUT_INSN_H_
#define CLEW_COMMON_X86_INPUT_INSN_H_

#include <cstdint>
#include <span>

#include "common/x86/layout.h"

namespace clew::x86 {

// Instructions whose result user mode cannot compute. Source: Intel SDM vol. 2.
enum class InputInsn : uint8_t {
  kNone,
  kCpuid,
  kRdtsc,
  kRdtscp,
  kXgetbv,
  kOther,  // RDRAND, RDSEED
};
constexpr InputInsn ClassifyInput(const Layout& layout) {
  if (!layout.opcode.IsLegacy(OpcodeMap::k0F)) {
    return InputInsn::kNone;
  }
  const uint8_t modrm = layout.modrm.value_or(0);
  switch (layout.opcode.code) {
    case 0xa2:
      return InputInsn::kCpuid;
    case 0x31:
      return InputInsn::kRdtsc;
    case 0x01:  // XGETBV; RDTSCP
      return modrm == 0xd0   ? InputInsn::kXgetbv
             : modrm == 0xf9 ? InputInsn::kRdtscp
                             : InputInsn::kNone;
    case 0xc7:  // RDRAND, RDSEED
      return modrm >= 0xf0 ? InputInsn::kOther : InputInsn::kNone;
    default:
      return InputInsn::kNone;
  }
}
constexpr InputInsn ClassifyInput(std::span<const uint8_t> insn) {
  return ClassifyInput(ScanLayout(insn));
}

// XSAVE, XRSTOR, XSAVEOPT; XRSTORS, XSAVEC, XSAVES: EDX:EAX says which state
// components.
constexpr bool ChoosesComponents(const Layout& layout) {
  if (!layout.opcode.IsLegacy(OpcodeMap::k0F) || !layout.names_memory()) {
    return false;
  }
  const int extension = layout.modrm.value_or(0) >> 3 & 7;
  return (layout.opcode.code == 0xae && extension >= 4 && extension <= 6) ||
         (layout.opcode.code == 0xc7 && extension >= 3 && extension <= 5);
}

}  // namespace clew::x86

#endif  // CLEW_COMMON_X86_INPUT_INSN_H_
