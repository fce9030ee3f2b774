#ifndef CLEW_COMMON_X86_OPCODE_MAP_H_
#define CLEW_COMMON_X86_OPCODE_MAP_H_

#include <cstdint>
#include <string_view>

#include "common/x86/opcode.h"

namespace clew::x86 {

// What follows an opcode of 64-bit mode, as one letter for each: small letters
// have no ModRM byte, capitals have one.
//
//   .     nothing (also prefixes and escapes, which are not opcodes)
//   b w   an immediate or relative target of 1, 2 bytes
//   z     one of 2 bytes with 66 and without REX.W, else of 4
//   v     as z, but of 8 bytes with REX.W (MOV to a register)
//   r     a relative target of 4 bytes: CPUs by Intel ignore 66 here
//   a     an address of 8 bytes, of 4 with 67 (MOV to and from AL ... RAX)
//   e     3 bytes (ENTER)
//   x     the opcode raises #UD whatever follows, on every CPU
//   M     ModRM
//   B Z   ModRM and an immediate of 1 byte, or as z
//   F G   ModRM, and an immediate as B, Z if its field reg is 0 or 1 (TEST)
//   C     ModRM whose field mod is taken for 3 (MOV to and from CR, DR)
//   S     ModRM, and 2 bytes with 66 or F2 (EXTRQ, INSERTQ of SSE4a)
//
// An opcode that the manual leaves undefined but does not reserve for #UD has
// the letter of its neighbours.
//
// Source: Intel SDM vol. 2, "Opcode Map"; AMD manual vol. 3 for SSE4a, 3DNow!.
inline constexpr std::string_view kOneByteMap =
    // 0 1 2 3 4 5 6 7 8 9 a b c d e f
    "MMMMbzxxMMMMbzx."   // 0
    "MMMMbzxxMMMMbzxx"   // 1
    "MMMMbz.xMMMMbz.x"   // 2
    "MMMMbz.xMMMMbz.x"   // 3
    "................"   // 4
    "................"   // 5
    "xx.M....zZbB...."   // 6
    "bbbbbbbbbbbbbbbb"   // 7
    "BZxBMMMMMMMMMMMM"   // 8
    "..........x....."   // 9
    "aaaa....bz......"   // a
    "bbbbbbbbvvvvvvvv"   // b
    "BBw...BZe.w..bx."   // c
    "MMMMxxx.MMMMMMMM"   // d
    "bbbbbbbbrrxb...."   // e
    "......FG......MM";  // f

inline constexpr std::string_view k0FMap =
    // 0 1 2 3 4 5 6 7 8 9 a b c d e f
    "MMMMM.....MxMM.B"   // 0
    "MMMMMMMMMMMMMMMM"   // 1
    "CCCCMMMMMMMMMMMM"   // 2
    "........MMMMMMMM"   // 3
    "MMMMMMMMMMMMMMMM"   // 4
    "MMMMMMMMMMMMMMMM"   // 5
    "MMMMMMMMMMMMMMMM"   // 6
    "BBBBMMM.SMMMMMMM"   // 7
    "rrrrrrrrrrrrrrrr"   // 8
    "MMMMMMMMMMMMMMMM"   // 9
    "...MBMMM...MBMMM"   // a
    "MMMMMMMMMxBMMMMM"   // b
    "MMBMBBBM........"   // c
    "MMMMMMMMMMMMMMMM"   // d
    "MMMMMMMMMMMMMMMM"   // e
    "MMMMMMMMMMMMMMMx";  // f

static_assert(kOneByteMap.size() == 256 && k0FMap.size() == 256);

// In map 0F, VEX and EVEX have the immediates of the SSE instructions, and
// ModRM everywhere but in VZEROUPPER and VZEROALL.
constexpr char VectorLetter(uint8_t code) {
  if (code == 0x77) {
    return '.';
  }
  return (code >= 0x70 && code <= 0x73) || code == 0xc2 ||
                 (code >= 0xc4 && code <= 0xc6)
             ? 'B'
             : 'M';
}

// REQUIRES: opcode.status is kWhole.
constexpr char MapLetter(const Opcode& opcode) {
  switch (opcode.map) {
    case OpcodeMap::kOneByte:
      return kOneByteMap[opcode.code];
    case OpcodeMap::k0F:
      return opcode.encoding == Encoding::kLegacy ? k0FMap[opcode.code]
                                                  : VectorLetter(opcode.code);
    case OpcodeMap::k0F3A:
      return 'B';
    case OpcodeMap::k0F38:
    case OpcodeMap::kMap5:
    case OpcodeMap::kMap6:
      return 'M';
  }
  return 'M';
}

constexpr bool HasModRm(char letter) { return letter >= 'A' && letter <= 'Z'; }

// Of an immediate that has the operand's size, but at most 4 bytes.
constexpr uint8_t OperandSizeBytes(const Prefixes& prefixes) {
  return prefixes.operand_size && !prefixes.w() ? 2 : 4;
}

// `modrm` is 0 where there is none.
constexpr uint8_t ImmediateBytes(char letter, const Prefixes& prefixes,
                                 uint8_t modrm) {
  const bool is_test = (modrm >> 3 & 7) <= 1;
  switch (letter) {
    case 'b':
    case 'B':
      return 1;
    case 'F':
      return is_test ? 1 : 0;
    case 'w':
      return 2;
    case 'S':
      return prefixes.operand_size || prefixes.repne ? 2 : 0;
    case 'e':
      return 3;
    case 'r':
      return 4;
    case 'z':
    case 'Z':
      return OperandSizeBytes(prefixes);
    case 'G':
      return is_test ? OperandSizeBytes(prefixes) : 0;
    case 'v':
      return prefixes.w() ? 8 : OperandSizeBytes(prefixes);
    case 'a':
      return prefixes.address_size ? 4 : 8;
    default:
      return 0;
  }
}

}  // namespace clew::x86

#endif  // CLEW_COMMON_X86_OPCODE_MAP_H_
