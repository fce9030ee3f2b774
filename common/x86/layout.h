#ifndef CLEW_COMMON_X86_LAYOUT_H_
#define CLEW_COMMON_X86_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <span>

#include "common/x86/opcode.h"
#include "common/x86/opcode_map.h"

namespace clew::x86 {

enum class LayoutStatus : uint8_t {
  kWhole,
  kTruncated,  // the bytes end within the instruction
  kTooLong,    // it would be longer than kInsnBytesMax
  kUndefined,  // it raises #UD, whatever its operands are
};

// Which bytes of an instruction of 64-bit mode are what:
//
//   opcode (with its prefixes) [ModRM [SIB] [displacement]] [immediate]
struct Layout {
  LayoutStatus status = LayoutStatus::kTruncated;
  Opcode opcode;
  bool takes_modrm = false;
  std::optional<uint8_t> modrm;  // nullopt: none, or behind the end
  std::optional<uint8_t> sib;    // likewise
  uint8_t displacement_bytes = 0;
  uint8_t immediate_bytes = 0;  // relative targets and absolute addresses too
  uint8_t length = 0;           // of all; 0 unless the status is kWhole

  // Whether ModRM names memory. False without ModRM.
  constexpr bool names_memory() const {
    return modrm && *modrm >> 6 != 3 && MapLetter(opcode) != 'C';
  }
};

// Sets modrm, sib and displacement_bytes; false if they are not all there.
constexpr bool TakeModRm(InsnBytes& bytes, Layout& layout) {
  layout.modrm = bytes.Take();
  if (!layout.modrm) {
    return false;
  }
  if (!layout.names_memory()) {
    return true;
  }
  const unsigned mod = *layout.modrm >> 6;
  unsigned base = *layout.modrm & 7;
  if (base == 4) {
    layout.sib = bytes.Take();
    if (!layout.sib) {
      return false;
    }
    base = *layout.sib & 7;
  }
  layout.displacement_bytes = mod == 2 || (mod == 0 && base == 5) ? 4
                              : mod == 1                          ? 1
                                                                  : 0;
  return true;
}

constexpr LayoutStatus TakeOperands(InsnBytes& bytes, Layout& layout) {
  const char letter = MapLetter(layout.opcode);
  if (letter == 'x') {
    return LayoutStatus::kUndefined;
  }
  layout.takes_modrm = HasModRm(letter);
  if (layout.takes_modrm && !TakeModRm(bytes, layout)) {
    return LayoutStatus::kTruncated;
  }
  layout.immediate_bytes =
      ImmediateBytes(letter, layout.opcode.prefixes, layout.modrm.value_or(0));
  for (int n = layout.displacement_bytes + layout.immediate_bytes; n > 0; --n) {
    if (!bytes.Take()) {
      return LayoutStatus::kTruncated;
    }
  }
  layout.length = bytes.taken();
  return LayoutStatus::kWhole;
}

// The layout of the instruction that `bytes` begin with. At most kInsnBytesMax
// are looked at.
constexpr Layout ScanLayout(std::span<const uint8_t> bytes) {
  InsnBytes insn(bytes);
  Layout layout;
  layout.opcode = TakeOpcode(insn);
  switch (layout.opcode.status) {
    case OpcodeStatus::kWhole:
      layout.status = TakeOperands(insn, layout);
      break;
    case OpcodeStatus::kUndefined:
      layout.status = LayoutStatus::kUndefined;
      break;
    case OpcodeStatus::kTruncated:
      break;
  }
  if (layout.status == LayoutStatus::kTruncated &&
      bytes.size() >= kInsnBytesMax) {
    layout.status = LayoutStatus::kTooLong;
  }
  return layout;
}

}  // namespace clew::x86

#endif  // CLEW_COMMON_X86_LAYOUT_H_
