#ifndef CLEW_COMMON_X86_OPCODE_H_
#define CLEW_COMMON_X86_OPCODE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace clew::x86 {

// An instruction of 64-bit mode up to its opcode, in one of the forms
//
//   legacy  prefix* [REX] opcode                   one-byte map
//           prefix* [REX] 0F opcode                0F
//           prefix* [REX] 0F 38 opcode             0F38; likewise 0F 3A
//   VEX     prefix* C5 [RvvvvLpp] opcode           0F
//           prefix* C4 [RXBmmmmm] [WvvvvLpp] opcode        map mmmmm
//   EVEX    prefix* 62 [RXBR0mmm] [Wvvvv1pp] [zLLbVaaa] opcode  map mmm
//
// where prefix* is any of 66, 67, F0, F2, F3 and the segment overrides, in any
// order and number. In VEX and EVEX the bits R, X, B are inverted. In 64-bit
// mode C4, C5 and 62 are nothing but VEX and EVEX.
//
// Sources: Intel SDM vol. 2, "Instruction Format", "Intel Advanced Vector
// Extensions (VEX)", "Intel AVX-512 Encoding"; "Opcode Map".
//
// All functions here are constexpr, allocate nothing, and read no byte behind
// the end of what they are given.

// No instruction is longer; a CPU raises #GP for one that would be.
inline constexpr size_t kInsnBytesMax = 15;

enum class Encoding : uint8_t { kLegacy, kVex2, kVex3, kEvex };

// kMap5 and kMap6 are EVEX only (AVX512-FP16).
enum class OpcodeMap : uint8_t { kOneByte, k0F, k0F38, k0F3A, kMap5, kMap6 };

enum class Segment : uint8_t { kNone, kFs, kGs };  // others do nothing

struct Prefixes {
  bool lock = false;
  bool rep = false;    // F3; of F2 and F3 the last one counts
  bool repne = false;  // F2
  bool operand_size = false;
  bool address_size = false;
  // A REX that another prefix follows: it does nothing, but belongs to the
  // instruction.
  bool ignored_rex = false;
  Segment segment = Segment::kNone;
  // The REX prefix, 0 if there is none. With VEX and EVEX: what a REX with the
  // same bits W, R, X, B would be.
  uint8_t rex = 0;

  constexpr bool w() const { return (rex & 8) != 0; }
  constexpr bool b() const { return (rex & 1) != 0; }
};

enum class OpcodeStatus : uint8_t {
  kWhole,
  kTruncated,  // the bytes end before the opcode
  // VEX or EVEX that raises #UD whatever follows: behind LOCK, 66, F2, F3 or
  // REX, with reserved bits, or in a map that is not defined.
  kUndefined,
};

struct Opcode {
  OpcodeStatus status = OpcodeStatus::kTruncated;
  Encoding encoding = Encoding::kLegacy;
  OpcodeMap map = OpcodeMap::kOneByte;
  uint8_t code = 0;          // the last byte of the opcode
  uint8_t bytes = 0;         // up to and with it
  uint8_t vector_bytes = 0;  // VEX: 16 or 32, as VEX.L says; else 0
  Prefixes prefixes;

  // Whether this is a whole opcode of that map without VEX and EVEX.
  constexpr bool IsLegacy(OpcodeMap wanted) const {
    return status == OpcodeStatus::kWhole && encoding == Encoding::kLegacy &&
           map == wanted;
  }
};

// Hands out the bytes of one instruction, one after another.
class InsnBytes {
 public:
  constexpr explicit InsnBytes(std::span<const uint8_t> bytes)
      : bytes_(bytes.first(std::min(bytes.size(), kInsnBytesMax))) {}

  constexpr std::optional<uint8_t> Peek() const {
    return taken_ < bytes_.size() ? std::optional(bytes_[taken_])
                                  : std::nullopt;
  }
  constexpr std::optional<uint8_t> Take() {
    const std::optional<uint8_t> byte = Peek();
    taken_ += byte ? 1 : 0;
    return byte;
  }
  constexpr uint8_t taken() const { return static_cast<uint8_t>(taken_); }

 private:
  std::span<const uint8_t> bytes_;
  size_t taken_ = 0;
};

// Notes one legacy prefix; false if `byte` is none.
constexpr bool TakeLegacyPrefix(uint8_t byte, Prefixes& prefixes) {
  switch (byte) {
    case 0xf0:
      prefixes.lock = true;
      return true;
    case 0xf2:
    case 0xf3:
      prefixes.repne = byte == 0xf2;
      prefixes.rep = byte == 0xf3;
      return true;
    case 0x66:
      prefixes.operand_size = true;
      return true;
    case 0x67:
      prefixes.address_size = true;
      return true;
    case 0x64:
    case 0x65:
      prefixes.segment = byte == 0x64 ? Segment::kFs : Segment::kGs;
      return true;
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
      return true;
    default:
      return false;
  }
}

constexpr bool IsRex(uint8_t byte) { return (byte & 0xf0) == 0x40; }

constexpr Prefixes TakePrefixes(InsnBytes& bytes) {
  Prefixes prefixes;
  for (auto byte = bytes.Peek(); byte; byte = bytes.Peek()) {
    if (!IsRex(*byte) && !TakeLegacyPrefix(*byte, prefixes)) {
      break;
    }
    prefixes.ignored_rex = prefixes.ignored_rex || prefixes.rex != 0;
    prefixes.rex = IsRex(*byte) ? *byte : 0;
    bytes.Take();
  }
  return prefixes;
}

// The bits of `payload` are R, X, B, inverted, at 7 to 5, as in the first
// payload byte of every form but C5, which has R only.
constexpr uint8_t RexOf(uint8_t payload, bool w) {
  return static_cast<uint8_t>(0x40 | (w ? 8 : 0) | (~payload >> 5 & 7));
}

// `payload` is the last one of VEX, [WvvvvLpp].
constexpr uint8_t VectorBytes(uint8_t payload) {
  return (payload & 4) != 0 ? 32 : 16;
}

constexpr OpcodeStatus TakeVex(InsnBytes& bytes, Opcode& opcode) {
  const std::optional<uint8_t> first = bytes.Take();
  if (!first) {
    return OpcodeStatus::kTruncated;
  }
  if (opcode.encoding == Encoding::kVex2) {
    opcode.prefixes.rex = RexOf(*first | 0x60, false);
    opcode.map = OpcodeMap::k0F;
    opcode.vector_bytes = VectorBytes(*first);
    return OpcodeStatus::kWhole;
  }
  const std::optional<uint8_t> second = bytes.Take();
  if (!second) {
    return OpcodeStatus::kTruncated;
  }
  const uint8_t map = *first & 0x1f;
  opcode.prefixes.rex = RexOf(*first, (*second & 0x80) != 0);
  opcode.map = static_cast<OpcodeMap>(map & 3);
  opcode.vector_bytes = VectorBytes(*second);
  return map >= 1 && map <= 3 ? OpcodeStatus::kWhole : OpcodeStatus::kUndefined;
}

constexpr OpcodeStatus TakeEvex(InsnBytes& bytes, Opcode& opcode) {
  const std::optional<uint8_t> first = bytes.Take();
  const std::optional<uint8_t> second = bytes.Take();
  const std::optional<uint8_t> third = bytes.Take();
  if (!first || !second || !third) {
    return OpcodeStatus::kTruncated;
  }
  const uint8_t map = *first & 0x0f;
  const bool fixed_bits = (*second & 4) != 0;
  const bool known = (map >= 1 && map <= 3) || map == 5 || map == 6;
  if (!fixed_bits || !known) {
    return OpcodeStatus::kUndefined;
  }
  opcode.prefixes.rex = RexOf(*first, (*second & 0x80) != 0);
  opcode.map = map <= 3   ? static_cast<OpcodeMap>(map)
               : map == 5 ? OpcodeMap::kMap5
                          : OpcodeMap::kMap6;
  return OpcodeStatus::kWhole;
}

// After C5, C4 or 62.
constexpr OpcodeStatus TakeVector(InsnBytes& bytes, Opcode& opcode) {
  const Prefixes& before = opcode.prefixes;
  if (before.lock || before.rep || before.repne || before.operand_size ||
      before.rex != 0) {
    return OpcodeStatus::kUndefined;
  }
  return opcode.encoding == Encoding::kEvex ? TakeEvex(bytes, opcode)
                                            : TakeVex(bytes, opcode);
}

constexpr Encoding EncodingOf(uint8_t byte) {
  switch (byte) {
    case 0xc5:
      return Encoding::kVex2;
    case 0xc4:
      return Encoding::kVex3;
    case 0x62:
      return Encoding::kEvex;
    default:
      return Encoding::kLegacy;
  }
}

// After 0F: takes 38 or 3A.
constexpr OpcodeMap TakeEscape(InsnBytes& bytes) {
  const std::optional<uint8_t> byte = bytes.Peek();
  if (byte != 0x38 && byte != 0x3a) {
    return OpcodeMap::k0F;
  }
  bytes.Take();
  return byte == 0x38 ? OpcodeMap::k0F38 : OpcodeMap::k0F3A;
}

constexpr Opcode TakeOpcode(InsnBytes& bytes) {
  Opcode opcode;
  opcode.prefixes = TakePrefixes(bytes);
  std::optional<uint8_t> code = bytes.Take();
  opcode.encoding = EncodingOf(code.value_or(0));
  if (opcode.encoding != Encoding::kLegacy) {
    opcode.status = TakeVector(bytes, opcode);
    if (opcode.status != OpcodeStatus::kWhole) {
      return opcode;
    }
    code = bytes.Take();
  } else if (code == 0x0f) {
    opcode.map = TakeEscape(bytes);
    code = bytes.Take();
  }
  opcode.status = code ? OpcodeStatus::kWhole : OpcodeStatus::kTruncated;
  opcode.code = code.value_or(0);
  opcode.bytes = bytes.taken();
  return opcode;
}

// The opcode that `bytes` begin with. At most kInsnBytesMax are looked at.
constexpr Opcode ScanOpcode(std::span<const uint8_t> bytes) {
  InsnBytes insn(bytes);
  return TakeOpcode(insn);
}

}  // namespace clew::x86

#endif  // CLEW_COMMON_X86_OPCODE_H_
