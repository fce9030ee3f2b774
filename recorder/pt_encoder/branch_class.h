#ifndef CLEW_RECORDER_PT_ENCODER_BRANCH_CLASS_H_
#define CLEW_RECORDER_PT_ENCODER_BRANCH_CLASS_H_

#include <cstdint>
#include <span>

#include "common/units.h"

namespace clew::recorder {

// What an instruction means to the encoder.
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

struct ClassifiedInsn {
  BranchClass branch_class = BranchClass::kNone;
  // Where a kConditional (if taken), kDirectJump or kDirectCall goes, as an
  // offset from the next instruction; 0 for the others.
  int64_t displacement = 0;

  TraceeAddr DirectTarget(TraceeAddr next_ip) const {
    return TraceeAddr(next_ip.as_int() + static_cast<uint64_t>(displacement));
  }
};

// Classifies one instruction of 64-bit user mode. `insn` is exactly its bytes
// (whoever calls knows its length). Bytes that are no whole instruction, are
// kNone.
ClassifiedInsn ClassifyInsn(std::span<const uint8_t> insn);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PT_ENCODER_BRANCH_CLASS_H_
