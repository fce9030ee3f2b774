#ifndef CLEW_MACHINE_PREFIXES_H_
#define CLEW_MACHINE_PREFIXES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "machine/insn.h"

namespace clew::machine {

// What stands before the operands of an instruction in 64-bit mode.
//
// Source: Intel SDM vol. 2, "Instruction Format".
struct Prefixes {
  bool lock = false;
  bool rep = false;
  bool repne = false;
  bool opsize = false;
  bool addr32 = false;
  uint8_t rex = 0;  // 0: none
  MemOperand::Segment segment = MemOperand::Segment::kNone;
  std::array<uint8_t, 3> opcode = {};
  size_t length = 0;     // prefixes and opcode together
  bool illegal = false;  // an opcode that raises #UD whatever follows
  // Combinations that no compiler makes and Capstone reads wrongly.
  bool misread = false;
};

Prefixes ScanPrefixes(std::span<const std::byte> bytes);

// Fills the fields of `insn` that prefixes decide.
void ApplyPrefixes(const Prefixes& prefixes, Insn& insn);

// Whether control may go elsewhere than to the next instruction.
bool EndsBlock(const Insn& insn);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_PREFIXES_H_
