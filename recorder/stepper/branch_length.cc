#include "recorder/stepper/branch_length.h"

#include "recorder/pt_encoder/insn_prefixes.h"

namespace clew::recorder {
namespace {

// Bytes of ModRM, SIB and displacement; 0 if they are not all there.
size_t ModRmBytes(std::span<const uint8_t> code) {
  if (code.empty()) {
    return 0;
  }
  const unsigned mod = code[0] >> 6;
  const unsigned rm = code[0] & 7;
  size_t bytes = 1;
  bool wide_displacement = mod == 2 || (mod == 0 && rm == 5);
  if (mod != 3 && rm == 4) {
    if (code.size() < 2) {
      return 0;
    }
    bytes = 2;
    wide_displacement |= mod == 0 && (code[1] & 7) == 5;
  }
  return bytes + (wide_displacement ? 4 : mod == 1 ? 1 : 0);
}

// A relative displacement: Intel's processors ignore the operand size prefix.
constexpr size_t kRel32Bytes = 4;

size_t TwoByteLength(std::span<const uint8_t> code) {
  if (code.size() < 2) {
    return 0;
  }
  if (code[1] >> 4 == 8) {
    return 2 + kRel32Bytes;
  }
  switch (code[1]) {
    case 0x05:
    case 0x07:
    case 0x34:
    case 0x35:
      return 2;
    case 0x01:
      return code.size() > 2 && code[2] >= 0xc1 && code[2] <= 0xc3 ? 3 : 0;
    default:
      return 0;
  }
}

size_t Group5Length(std::span<const uint8_t> code) {
  if (code.size() < 2) {
    return 0;
  }
  const unsigned extension = code[1] >> 3 & 7;
  const size_t operand = ModRmBytes(code.subspan(1));
  return extension >= 2 && extension <= 5 && operand != 0 ? 1 + operand : 0;
}

size_t OpcodeLength(std::span<const uint8_t> code) {
  if (code.empty()) {
    return 0;
  }
  if (code[0] >> 4 == 7 || (code[0] >= 0xe0 && code[0] <= 0xe3)) {
    return 2;
  }
  switch (code[0]) {
    case 0x0f:
      return TwoByteLength(code);
    case 0xe8:
    case 0xe9:
      return 1 + kRel32Bytes;
    case 0xc2:
    case 0xca:
      return 3;
    case 0xcd:
    case 0xeb:
      return 2;
    case 0xc3:
    case 0xcb:
    case 0xcc:
    case 0xcf:
    case 0xf1:
      return 1;
    case 0xff:
      return Group5Length(code);
    default:
      return 0;
  }
}

}  // namespace

size_t BranchLength(std::span<const uint8_t> code) {
  const size_t prefix = PrefixesOf(code).bytes;
  const size_t opcode = OpcodeLength(code.subspan(prefix));
  const size_t bytes = prefix + opcode;
  return opcode == 0 || bytes > code.size() || bytes > kInsnBytesMax ? 0
                                                                     : bytes;
}

}  // namespace clew::recorder
