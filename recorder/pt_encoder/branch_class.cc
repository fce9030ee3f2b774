#include "recorder/pt_encoder/branch_class.h"

#include <cstddef>

#include "recorder/pt_encoder/insn_prefixes.h"

namespace clew::recorder {
namespace {

// The displacement is all that follows the opcode.
ClassifiedInsn Direct(BranchClass branch_class,
                      std::span<const uint8_t> displacement) {
  uint64_t value = 0;
  for (size_t i = displacement.size(); i > 0; --i) {
    value = value << 8 | displacement[i - 1];
  }
  switch (displacement.size()) {
    case 1:
      return {branch_class, static_cast<int8_t>(value)};
    case 2:  // operand size 16, which only AMD's processors honour
      return {branch_class, static_cast<int16_t>(value)};
    case 4:
      return {branch_class, static_cast<int32_t>(value)};
    default:
      return {};
  }
}

// Opcode FF: the ModRM byte tells.
BranchClass ClassifyGroup5(std::span<const uint8_t> operands) {
  if (operands.empty()) {
    return BranchClass::kNone;
  }
  switch (operands[0] >> 3 & 7) {
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

// Opcodes that follow 0F.
ClassifiedInsn ClassifyTwoByte(std::span<const uint8_t> insn) {
  if (insn.empty()) {
    return {};
  }
  if (insn[0] >> 4 == 8) {
    return Direct(BranchClass::kConditional, insn.subspan(1));
  }
  switch (insn[0]) {
    case 0x05:  // SYSCALL
    case 0x07:  // SYSRET
    case 0x34:  // SYSENTER
    case 0x35:  // SYSEXIT
      return {BranchClass::kFar};
    case 0x01:  // VMCALL, VMLAUNCH, VMRESUME
      return {insn.size() > 1 && insn[1] >= 0xc1 && insn[1] <= 0xc3
                  ? BranchClass::kFar
                  : BranchClass::kNone};
    default:
      return {};
  }
}

bool IsString(uint8_t opcode) {
  return (opcode >= 0x6c && opcode <= 0x6f) ||  // INS, OUTS
         (opcode >= 0xa4 && opcode <= 0xa7) ||  // MOVS, CMPS
         (opcode >= 0xaa && opcode <= 0xaf);    // STOS, LODS, SCAS
}

ClassifiedInsn ClassifyOneByte(uint8_t opcode,
                               std::span<const uint8_t> operands) {
  if (opcode >> 4 == 7) {
    return Direct(BranchClass::kConditional, operands);
  }
  switch (opcode) {
    case 0xe0:
    case 0xe1:
    case 0xe2:
    case 0xe3:
      return Direct(BranchClass::kConditional, operands);
    case 0xe8:
      return Direct(BranchClass::kDirectCall, operands);
    case 0xe9:
    case 0xeb:
      return Direct(BranchClass::kDirectJump, operands);
    case 0xc2:
    case 0xc3:
      return {BranchClass::kReturn};
    case 0x9a:  // far CALL, INTO, far JMP: never retire in 64-bit mode; far, so
    case 0xce:  // that the whole opcode map agrees with libipt's
    case 0xea:
    case 0xca:  // far RET
    case 0xcb:
    case 0xcc:  // INT3, INT, IRET, INT1
    case 0xcd:
    case 0xcf:
    case 0xf1:
      return {BranchClass::kFar};
    case 0xff:
      return {ClassifyGroup5(operands)};
    default:
      return {};
  }
}

}  // namespace

ClassifiedInsn ClassifyInsn(std::span<const uint8_t> insn) {
  const InsnPrefixes prefixes = PrefixesOf(insn);
  insn = insn.subspan(prefixes.bytes);
  if (insn.empty()) {
    return {};
  }
  if (insn[0] == 0x0f) {
    return ClassifyTwoByte(insn.subspan(1));
  }
  if (prefixes.repeat && IsString(insn[0])) {
    return {BranchClass::kRepString};
  }
  return ClassifyOneByte(insn[0], insn.subspan(1));
}

}  // namespace clew::recorder
