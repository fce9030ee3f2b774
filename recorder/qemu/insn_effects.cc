#include "recorder/qemu/insn_effects.h"

#include "common/x86/layout.h"

namespace clew::recorder {
namespace {

using x86::Layout;
using x86::Opcode;
using x86::OpcodeMap;

// LEA; NOP and prefetches.
bool OnlyNamesMemory(const Opcode& opcode) {
  const uint8_t c = opcode.code;
  return (opcode.IsLegacy(OpcodeMap::kOneByte) && c == 0x8d) ||
         (opcode.IsLegacy(OpcodeMap::k0F) &&
          (c == 0x0d || (c >= 0x18 && c <= 0x1f)));
}

// String instructions, MOV with a 64-bit address, XLAT.
bool HasImplicitMemory(const Opcode& opcode) {
  const uint8_t c = opcode.code;
  return opcode.IsLegacy(OpcodeMap::kOneByte) &&
         ((c >= 0xa0 && c <= 0xa7) || (c >= 0xaa && c <= 0xaf) || c == 0xd7);
}

// REQUIRES: layout.names_memory().
bool BaseIsRsp(const Layout& layout) {
  return layout.sib && (*layout.sib & 7) == 4 && !layout.opcode.prefixes.b();
}

}  // namespace

bool AccessesSharedMemory(std::span<const uint8_t> insn) {
  const Layout layout = x86::ScanLayout(insn);
  const Opcode& opcode = layout.opcode;
  if (opcode.status != x86::OpcodeStatus::kWhole || HasImplicitMemory(opcode)) {
    return true;
  }
  if (!layout.takes_modrm || OnlyNamesMemory(opcode)) {
    return false;
  }
  return !layout.modrm || (layout.names_memory() && !BaseIsRsp(layout));
}

DeviantInsn ClassifyDeviant(std::span<const uint8_t> insn) {
  const Layout layout = x86::ScanLayout(insn);
  const Opcode& opcode = layout.opcode;
  const uint8_t modrm = layout.modrm.value_or(0);
  const int extension = modrm >> 3 & 7;
  if (opcode.IsLegacy(OpcodeMap::k0F) && opcode.code == 0xae) {
    return layout.names_memory() && extension == 2 ? DeviantInsn::kLoadMxcsr
                                                   : DeviantInsn::kNone;
  }
  if (!opcode.IsLegacy(OpcodeMap::kOneByte)) {
    return DeviantInsn::kNone;
  }
  const bool to_memory =
      opcode.code == 0xdd && layout.names_memory() && extension == 7;
  const bool to_ax = opcode.code == 0xdf && modrm == 0xe0;
  return to_memory || to_ax ? DeviantInsn::kStoreX87Status : DeviantInsn::kNone;
}

}  // namespace clew::recorder
