#include "recorder/qemu/insn_scan.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace clew::recorder {
namespace {

enum class Map : uint8_t { kOneByte, kTwoByte, kThreeByte };

// An instruction cut after its opcode.
struct Opcode {
  Map map = Map::kOneByte;
  uint8_t code = 0;
  uint8_t rex = 0;
  bool truncated = true;
  std::span<const uint8_t> rest;  // ModRM and on
};

bool IsLegacyPrefix(uint8_t byte) {
  constexpr std::array<uint8_t, 11> kPrefixes = {
      0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65};
  return std::find(kPrefixes.begin(), kPrefixes.end(), byte) != kPrefixes.end();
}

Opcode ParseOpcode(std::span<const uint8_t> insn) {
  Opcode op;
  size_t i = 0;
  while (i < insn.size() && IsLegacyPrefix(insn[i])) {
    ++i;
  }
  if (i < insn.size() && (insn[i] & 0xf0) == 0x40) {
    op.rex = insn[i++];
  }
  if (i < insn.size() && insn[i] == 0x0f) {
    op.map = Map::kTwoByte;
    ++i;
    if (i < insn.size() && (insn[i] == 0x38 || insn[i] == 0x3a)) {
      op.map = Map::kThreeByte;
      ++i;
    }
  }
  if (i < insn.size()) {
    op.code = insn[i++];
    op.truncated = false;
    op.rest = insn.subspan(i);
  }
  return op;
}

bool HasModRmOneByte(uint8_t c) {
  if (c < 0x40) {
    return (c & 7) < 4;
  }
  return c == 0x63 || c == 0x69 || c == 0x6b || (c >= 0x80 && c <= 0x8f) ||
         c == 0xc0 || c == 0xc1 || c == 0xc6 || c == 0xc7 ||
         (c >= 0xd0 && c <= 0xd3) || (c >= 0xd8 && c <= 0xdf) || c == 0xf6 ||
         c == 0xf7 || c == 0xfe || c == 0xff;
}

bool HasModRmTwoByte(uint8_t c) {
  const bool none = (c >= 0x05 && c <= 0x09) || c == 0x0b || c == 0x0e ||
                    (c >= 0x30 && c <= 0x37) || c == 0x77 ||
                    (c >= 0x80 && c <= 0x8f) || (c >= 0xa0 && c <= 0xa2) ||
                    (c >= 0xa8 && c <= 0xaa) || (c >= 0xc8 && c <= 0xcf);
  return !none;
}

bool HasModRm(const Opcode& op) {
  switch (op.map) {
    case Map::kOneByte:
      return HasModRmOneByte(op.code);
    case Map::kTwoByte:
      return HasModRmTwoByte(op.code);
    case Map::kThreeByte:
      return true;
  }
  return true;
}

// LEA; NOP and prefetches.
bool OnlyNamesMemory(const Opcode& op) {
  if (op.map == Map::kOneByte) {
    return op.code == 0x8d;
  }
  return op.map == Map::kTwoByte &&
         (op.code == 0x0d || (op.code >= 0x18 && op.code <= 0x1f));
}

// String instructions, MOV with a 64-bit address, XLAT.
bool HasImplicitMemory(const Opcode& op) {
  const uint8_t c = op.code;
  return op.map == Map::kOneByte &&
         ((c >= 0xa0 && c <= 0xa7) || (c >= 0xaa && c <= 0xaf) || c == 0xd7);
}

}  // namespace

bool AccessesSharedMemory(std::span<const uint8_t> insn) {
  const Opcode op = ParseOpcode(insn);
  if (op.truncated) {
    return true;
  }
  if (HasImplicitMemory(op)) {
    return true;
  }
  if (!HasModRm(op) || OnlyNamesMemory(op)) {
    return false;
  }
  if (op.rest.empty()) {
    return true;
  }
  const uint8_t mod = op.rest[0] >> 6;
  const uint8_t rm = op.rest[0] & 7;
  if (mod == 3) {
    return false;
  }
  const bool has_sib = rm == 4;
  if (!has_sib || op.rest.size() < 2) {
    return true;
  }
  const bool base_is_rsp = (op.rest[1] & 7) == 4 && (op.rex & 1) == 0;
  return !base_is_rsp;
}

InputInsn ClassifyInput(std::span<const uint8_t> insn) {
  const Opcode op = ParseOpcode(insn);
  if (op.truncated || op.map != Map::kTwoByte) {
    return InputInsn::kNone;
  }
  if (op.code == 0xa2) {
    return InputInsn::kCpuid;
  }
  if (op.code == 0x31) {
    return InputInsn::kRdtsc;
  }
  const uint8_t modrm = op.rest.empty() ? 0 : op.rest[0];
  const bool rdtscp_xgetbv =
      op.code == 0x01 && (modrm == 0xf9 || modrm == 0xd0);
  const bool rdrand_rdseed = op.code == 0xc7 && modrm >= 0xf0;
  return rdtscp_xgetbv || rdrand_rdseed ? InputInsn::kOther : InputInsn::kNone;
}

}  // namespace clew::recorder
