#include "common/x86/input_insn.h"

#include "common/x86/layout.h"

namespace clew::x86 {

InputInsn ClassifyInput(std::span<const uint8_t> insn) {
  const Layout layout = ScanLayout(insn);
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

}  // namespace clew::x86
