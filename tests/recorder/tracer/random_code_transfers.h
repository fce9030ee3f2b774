#ifndef CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_TRANSFERS_H_
#define CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_TRANSFERS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tests/recorder/tracer/code_writer.h"
#include "tests/recorder/tracer/random_code_insns.h"
#include "tests/recorder/tracer/random_code_program.h"

namespace clew::tracer::random_code {

// Writes single transfers of control, in all their encodings, with what loads
// their operands. That changes no flag.
class TransferWriter {
 public:
  // Both must outlive it.
  TransferWriter(Program& program, InsnWriter& insns);

  // Makes all flags depend on how many blocks are left, for a conditional jump.
  void ChangeFlags();
  // With displacements of 32 bits.
  void Jump(Label target);
  void Call(Label target);
  void JumpIf(uint8_t condition, Label target);
  // Of 8 bits.
  void ShortJump(Label target);
  void ShortJumpIf(uint8_t condition, Label target);
  // LOOPNE, LOOPE, LOOP, JRCXZ: 0 to 3.
  void Count(uint8_t kind, Label target, bool of_ecx);
  void CountAtRandom(Label target);

  // Through a register or memory, not at or above RSP.
  void IndirectJump(Label target);
  void IndirectCall(Label target);
  void JumpTo(const Operand& operand) { WriteIndirect(4, operand); }
  void CallTo(const Operand& operand) { WriteIndirect(2, operand); }
  // `popped_bytes` besides the address; 65535 at most.
  void Return(uint64_t popped_bytes);
  void PushAddress(Label label);
  // lea rsp, [rsp + bytes]
  void MoveStack(int64_t bytes);

 private:
  void WriteIndirect(uint8_t digit, const Operand& operand);
  Operand Pointer(Label target);
  void MaybePrefix(std::initializer_list<uint8_t> prefixes);

  Program& program_;
  Dice& dice_;
  CodeWriter& code_;
  InsnWriter& insns_;
};

// Writes how control leaves a block for others.
class ExitWriter {
 public:
  // All must outlive it.
  ExitWriter(Program& program, InsnWriter& insns, TransferWriter& transfers);

  // Binds the block, behind jumps that short ones backward may reach.
  void BeginBlock();
  // Conditional transfers to random blocks. `is_last`: only WriteLast follows.
  void WriteConditionals(bool is_last);
  // What ends a block.
  void WriteLast();

 private:
  void WriteConditional();
  void WriteCount();
  void WriteEmptyConditional();
  Label NearTarget();
  void WriteHop();
  void WritePendingHops();
  void WriteShortJump();
  void WriteReturn(Label target);
  void WriteJumpToPushed(Label target);
  void WriteDispatch();
  void WriteScramble(uint8_t index);

  Program& program_;
  Dice& dice_;
  CodeWriter& code_;
  InsnWriter& insns_;
  TransferWriter& transfers_;
  // What short jumps backward may reach, and the block that they lead to.
  struct Near {
    Label label{};
    size_t block = 0;
  };
  std::vector<Near> near_;
  std::vector<Label> pending_;  // jumps to blocks that are to be written
};

}  // namespace clew::tracer::random_code

#endif  // CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_TRANSFERS_H_
