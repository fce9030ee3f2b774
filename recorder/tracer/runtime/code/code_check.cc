#include "recorder/tracer/runtime/code/code_check.h"

#include <cstddef>

#include "recorder/tracer/runtime/code/encode.h"

namespace clew::tracer {
namespace {

using x86::OpcodeMap;

// Of instructions of one byte with an operand in memory: ALU instructions to a
// register, CMP, TEST, loads, MUL and DIV, PUSH and transfers.
bool OneByteReads(uint8_t code, unsigned reg) {
  if (code < 0x40) {
    return (code & 7) == 2 || (code & 7) == 3 || code == 0x38 || code == 0x39;
  }
  switch (code) {
    case 0x63:
    case 0x69:
    case 0x6b:
    case 0x84:
    case 0x85:
    case 0x8a:
    case 0x8b:
    case 0x8d:
      return true;
    case 0x80:
    case 0x81:
    case 0x83:
      return reg == 7;
    case 0xf6:
    case 0xf7:
      return reg != 2 && reg != 3;
    case 0xff:
      return reg >= 2;
    default:
      return false;
  }
}

// Likewise in the map 0F: CMOVcc, loads that extend, NOP and hints, IMUL; loads
// and arithmetic of SSE.
bool TwoByteReads(uint8_t code) {
  switch (code) {
    case 0x0d:
    case 0x10:
    case 0x12:
    case 0x14:
    case 0x15:
    case 0x16:
    case 0x18:
    case 0x1f:
    case 0x28:
    case 0x2a:
    case 0x70:
    case 0xaf:
    case 0xb6:
    case 0xb7:
    case 0xbe:
    case 0xbf:
    case 0xc2:
    case 0xc6:
      return true;
    default:
      return (code >= 0x2c && code <= 0x2f) || (code >= 0x40 && code <= 0x4f) ||
             (code >= 0x51 && code <= 0x6f) || (code >= 0x74 && code <= 0x76);
  }
}

// Those that are common: of the others it is not said.
bool OnlyReads(const x86::Layout& layout) {
  const x86::Opcode& opcode = layout.opcode;
  if (opcode.IsLegacy(OpcodeMap::kOneByte)) {
    return OneByteReads(opcode.code, layout.modrm.value_or(0) >> 3 & 7);
  }
  return opcode.IsLegacy(OpcodeMap::k0F) && TwoByteReads(opcode.code);
}

// INS, MOV to an absolute address, MOVS, STOS; MASKMOVQ and MASKMOVDQU.
bool WritesUnnamed(const x86::Opcode& opcode) {
  if (opcode.map == OpcodeMap::k0F) {
    return opcode.code == 0xf7;
  }
  switch (opcode.code) {
    case 0x6c:
    case 0x6d:
    case 0xa2:
    case 0xa3:
    case 0xa4:
    case 0xa5:
    case 0xaa:
    case 0xab:
      return opcode.IsLegacy(OpcodeMap::kOneByte);
    default:
      return false;
  }
}

// mov ecx, [rcx], of so many bytes, without a sign
void Load(Code& code, size_t bytes) {
  if (bytes == 4) {
    code.Bytes({0x8b, 0x09});
  } else {
    code.Bytes({0x0f, static_cast<uint8_t>(bytes == 2 ? 0xb7 : 0xb6), 0x09});
  }
}

}  // namespace

bool MayWrite(const Insn& insn) {
  return WritesUnnamed(insn.layout.opcode) ||
         (insn.layout.names_memory() && !OnlyReads(insn.layout));
}

uint64_t WriteCheck(Arena& arena, uint32_t fragment, uint64_t start,
                    std::span<const uint8_t> code, uint64_t body) {
  Code& hot = arena.hot;
  const uint64_t stale = AddrOf(hot.at());
  hot.Byte(0xb8 | kRcx);  // mov ecx, fragment
  hot.Word(fragment);
  Jump(hot, arena.stale);
  const uint64_t begin = AddrOf(hot.at());
  Save(hot, kRcx);
  for (size_t at = 0; at < code.size();) {
    const uint64_t addr = start + at;
    const size_t left = code.size() - at;
    // Aligned, as the program's flags may ask for it (AC).
    const size_t bytes = addr % 4 == 0 && left >= 4   ? 4
                         : addr % 2 == 0 && left >= 2 ? 2
                                                      : 1;
    uint32_t wanted = 0;
    for (size_t i = bytes; i-- > 0;) {
      wanted = wanted << 8 | code[at + i];
    }
    LoadNumber(hot, kRcx, addr);
    Load(hot, bytes);
    hot.Bytes({0x8d, 0x89});  // lea ecx, [rcx - wanted]: no flag is changed
    hot.Word(-wanted);
    hot.Bytes({0xe3, 5});  // jrcxz, over the jump
    Jump(hot, stale);
    at += bytes;
  }
  Restore(hot, kRcx);
  Jump(hot, body);
  return begin;
}

}  // namespace clew::tracer
