#ifndef CLEW_COMMON_X86_BRANCH_H_
#define CLEW_COMMON_X86_BRANCH_H_

#include <cstdint>
#include <optional>
#include <span>

#include "common/units.h"
#include "common/x86/layout.h"
#include "common/x86/opcode.h"

namespace clew::x86 {

// How an instruction may transfer control, as Intel PT tells branches apart.
enum class BranchClass : uint8_t {
  kNone,          // goes on behind itself
  kRepString,     // likewise, after any number of iterations (REP MOVS, ...)
  kConditional,   // JCC, LOOP, LOOPE, LOOPNE, JRCXZ
  kDirectJump,    // JMP rel
  kDirectCall,    // CALL rel
  kIndirectJump,  // near JMP through register or memory
  kIndirectCall,  // near CALL through register or memory
  kReturn,        // near RET
  kFar,           // SYSCALL, SYSENTER, INT, IRET, far JMP, CALL and RET, ...
};

// Whether control may go elsewhere than to the next instruction.
constexpr bool TransfersControl(BranchClass branch_class) {
  return branch_class != BranchClass::kNone &&
         branch_class != BranchClass::kRepString;
}

// Whether its target is an offset in the instruction.
constexpr bool IsRelative(BranchClass branch_class) {
  return branch_class == BranchClass::kConditional ||
         branch_class == BranchClass::kDirectJump ||
         branch_class == BranchClass::kDirectCall;
}

struct Branch {
  BranchClass branch_class = BranchClass::kNone;
  // Where one that IsRelative goes (a kConditional if it is taken), as an
  // offset from the next instruction; 0 for the others.
  int64_t displacement = 0;

  TraceeAddr DirectTarget(TraceeAddr next_ip) const {
    return TraceeAddr(next_ip.as_int() + static_cast<uint64_t>(displacement));
  }
};

// INS, OUTS, MOVS, CMPS, STOS, LODS, SCAS.
constexpr bool IsString(uint8_t code) {
  return (code >= 0x6c && code <= 0x6f) || (code >= 0xa4 && code <= 0xa7) ||
         (code >= 0xaa && code <= 0xaf);
}

// Opcode FF: ModRM tells.
constexpr BranchClass ClassOfGroup5(uint8_t modrm) {
  switch (modrm >> 3 & 7) {
    case 2:
      return BranchClass::kIndirectCall;
    case 4:
      return BranchClass::kIndirectJump;
    case 3:
    case 5:
      return BranchClass::kFar;
    default:
      return BranchClass::kNone;
  }
}

constexpr BranchClass ClassInOneByteMap(uint8_t code, const Prefixes& prefixes,
                                        std::optional<uint8_t> modrm) {
  if (code >> 4 == 7 || (code >= 0xe0 && code <= 0xe3)) {
    return BranchClass::kConditional;
  }
  switch (code) {
    case 0xe8:
      return BranchClass::kDirectCall;
    case 0xe9:
    case 0xeb:
      return BranchClass::kDirectJump;
    case 0xc2:
    case 0xc3:
      return BranchClass::kReturn;
    case 0x9a:  // far CALL, INTO, far JMP: #UD in 64-bit mode; far, so that the
    case 0xce:  // whole opcode map agrees with libipt's
    case 0xea:
    case 0xca:  // far RET
    case 0xcb:
    case 0xcc:  // INT3, INT, IRET, INT1
    case 0xcd:
    case 0xcf:
    case 0xf1:
      return BranchClass::kFar;
    case 0xff:
      return modrm ? ClassOfGroup5(*modrm) : BranchClass::kNone;
    default:
      return (prefixes.rep || prefixes.repne) && IsString(code)
                 ? BranchClass::kRepString
                 : BranchClass::kNone;
  }
}

constexpr BranchClass ClassIn0F(uint8_t code, std::optional<uint8_t> modrm) {
  if (code >> 4 == 8) {
    return BranchClass::kConditional;
  }
  switch (code) {
    case 0x05:  // SYSCALL, SYSRET
    case 0x07:
    case 0x34:  // SYSENTER, SYSEXIT
    case 0x35:
      return BranchClass::kFar;
    case 0x01:  // VMCALL, VMLAUNCH, VMRESUME; UIRET (#UD without F3)
      return modrm && ((*modrm >= 0xc1 && *modrm <= 0xc3) || *modrm == 0xec)
                 ? BranchClass::kFar
                 : BranchClass::kNone;
    default:
      return BranchClass::kNone;
  }
}

// `modrm` is the byte behind the opcode, nullopt where there is none. No VEX or
// EVEX instruction transfers control.
constexpr BranchClass ClassOf(const Opcode& opcode,
                              std::optional<uint8_t> modrm) {
  if (opcode.IsLegacy(OpcodeMap::kOneByte)) {
    return ClassInOneByteMap(opcode.code, opcode.prefixes, modrm);
  }
  return opcode.IsLegacy(OpcodeMap::k0F) ? ClassIn0F(opcode.code, modrm)
                                         : BranchClass::kNone;
}

// A little-endian number, sign-extended; nullopt if it has another size than 1,
// 2 or 4 bytes.
constexpr std::optional<int64_t> SignedNumber(std::span<const uint8_t> bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | bytes[i - 1];
  }
  switch (bytes.size()) {
    case 1:
      return static_cast<int8_t>(value);
    case 2:
      return static_cast<int16_t>(value);
    case 4:
      return static_cast<int32_t>(value);
    default:
      return std::nullopt;
  }
}

// Classifies one instruction of 64-bit user mode. `insn` is exactly its bytes:
// who has run it knows how long it is, also where CPUs disagree (near branches
// with 66, which have a displacement of 16 bits on CPUs by AMD and in QEMU).
// Bytes that are not a whole branch are kNone. `opcode` is ScanOpcode(insn).
constexpr Branch ClassifyBranch(const Opcode& opcode,
                                std::span<const uint8_t> insn) {
  const auto operands = insn.subspan(opcode.bytes);
  Branch branch{ClassOf(
      opcode, operands.empty() ? std::nullopt : std::optional(operands[0]))};
  if (IsRelative(branch.branch_class)) {
    const std::optional<int64_t> displacement = SignedNumber(operands);
    return displacement ? Branch{branch.branch_class, *displacement} : Branch{};
  }
  return branch;
}

constexpr Branch ClassifyBranch(std::span<const uint8_t> insn) {
  return ClassifyBranch(ScanOpcode(insn), insn);
}

}  // namespace clew::x86

#endif  // CLEW_COMMON_X86_BRANCH_H_
