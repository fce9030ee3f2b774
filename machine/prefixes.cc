#include "machine/prefixes.h"

#include <algorithm>

namespace clew::machine {
namespace {

// Applies one legacy prefix; false if `byte` is none.
bool TakeLegacyPrefix(uint8_t byte, Prefixes& prefixes) {
  switch (byte) {
    case 0xf0:
      prefixes.lock = true;
      return true;
    case 0xf2:  // the last one of F2, F3 counts
      prefixes.repne = true;
      prefixes.rep = false;
      return true;
    case 0xf3:
      prefixes.rep = true;
      prefixes.repne = false;
      return true;
    case 0x66:
      prefixes.opsize = true;
      return true;
    case 0x67:
      prefixes.addr32 = true;
      return true;
    case 0x64:
      prefixes.segment = MemOperand::Segment::kFs;
      return true;
    case 0x65:
      prefixes.segment = MemOperand::Segment::kGs;
      return true;
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:  // without meaning in 64-bit mode
      return true;
    default:
      return false;
  }
}

// Not defined in 64-bit mode (SDM vol. 2, "Opcode Map", superscript i64), and
// the opcodes reserved to be undefined: UD0, UD1, UD2.
bool IsIllegal(const std::array<uint8_t, 3>& opcode) {
  static constexpr uint8_t kIllegal[] = {
      0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37,
      0x3f, 0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd5, 0xd6, 0xea};
  if (opcode[0] == 0x0f) {
    return opcode[1] == 0x0b || opcode[1] == 0xb9 || opcode[1] == 0xff;
  }
  return std::find(std::begin(kIllegal), std::end(kIllegal), opcode[0]) !=
         std::end(kIllegal);
}

// Opcodes of the 0F map for which 66, F2, F3 are no mandatory prefixes.
bool IsIntegerOpcode(uint8_t second) {
  return (second >= 0x40 && second <= 0x4f) ||
         (second >= 0x80 && second <= 0xb7) || second == 0xba ||
         second == 0xbb || second == 0xbe || second == 0xbf || second == 0xc0 ||
         second == 0xc1 || (second >= 0xc8 && second <= 0xcf);
}

// 66 together with F2 or F3 where neither is a mandatory prefix: Capstone gets
// the operand size wrong, but for string instructions.
bool IsMisread(const Prefixes& prefixes) {
  const uint8_t opcode = prefixes.opcode[0];
  const bool string = opcode >= 0xa4 && opcode <= 0xaf;
  const bool mandatory = opcode == 0x0f && !IsIntegerOpcode(prefixes.opcode[1]);
  return prefixes.opsize && (prefixes.rep || prefixes.repne) && !string &&
         !mandatory;
}

}  // namespace

Prefixes ScanPrefixes(std::span<const std::byte> bytes) {
  Prefixes prefixes;
  size_t i = 0;
  const auto at = [&](size_t n) {
    return n < bytes.size() ? static_cast<uint8_t>(bytes[n]) : uint8_t{0};
  };
  while (i < bytes.size() && TakeLegacyPrefix(at(i), prefixes)) {
    ++i;
  }
  if ((at(i) & 0xf0) == 0x40) {
    prefixes.rex = at(i++);
    // REX counts only directly before the opcode.
    Prefixes ignored;
    prefixes.misread =
        TakeLegacyPrefix(at(i), ignored) || (at(i) & 0xf0) == 0x40;
  }
  prefixes.opcode[0] = at(i++);
  if (prefixes.opcode[0] == 0x0f) {
    prefixes.opcode[1] = at(i++);
    if (prefixes.opcode[1] == 0x38 || prefixes.opcode[1] == 0x3a) {
      prefixes.opcode[2] = at(i);
    }
  }
  prefixes.length = i;
  prefixes.misread = prefixes.misread || IsMisread(prefixes);
  prefixes.illegal = i <= bytes.size() && IsIllegal(prefixes.opcode);
  return prefixes;
}

void ApplyPrefixes(const Prefixes& prefixes, Insn& insn) {
  insn.lock = prefixes.lock;
  insn.rep = prefixes.rep;
  insn.repne = prefixes.repne;
  insn.opsize = prefixes.opsize;
  insn.addr32 = prefixes.addr32;
  insn.rex_w = (prefixes.rex & 8) != 0;
  insn.operand_size_bytes = insn.rex_w ? 8 : insn.opsize ? 2 : 4;
  insn.mem.segment = prefixes.segment;
  insn.opcode = prefixes.opcode;
}

bool EndsBlock(const Insn& insn) {
  const uint8_t first = insn.opcode[0];
  const uint8_t second = insn.opcode[1];
  if (first == 0x0f) {
    return (second & 0xf0) == 0x80 || second == 0x05 || second == 0x07 ||
           second == 0x34 || second == 0x35;
  }
  if (first == 0xff) {
    const unsigned group = insn.modrm >> 3 & 7;
    return group >= 2 && group <= 5;
  }
  return (first & 0xf0) == 0x70 || (first >= 0xe0 && first <= 0xe3) ||
         first == 0xe8 || first == 0xe9 || first == 0xeb || first == 0xc2 ||
         first == 0xc3 || (first >= 0xca && first <= 0xcf) || first == 0xf1;
}

}  // namespace clew::machine
