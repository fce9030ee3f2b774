#ifndef CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_SEQUENCES_H_
#define CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_SEQUENCES_H_

#include <cstdint>

#include "tests/recorder/tracer/code_writer.h"
#include "tests/recorder/tracer/random_code_insns.h"
#include "tests/recorder/tracer/random_code_program.h"

namespace clew::tracer::random_code {

// Writes instructions that need others before or behind them, and those without
// a ModRM byte. RSP is behind a sequence as before, but now and then, unless
// the stack is to be kept.
class SequenceWriter {
 public:
  // Both must outlive it.
  SequenceWriter(Program& program, InsnWriter& insns);

  void WriteAny();
  // Pushes what is at hand.
  void WritePush();

 private:
  void WriteShort();
  void WriteAccumulator();
  void WriteLoad();
  void WriteOneRegister();
  void WriteAbsolute();
  void WriteDivision();
  void WriteBitScan();
  void WriteBitOfMemory();
  void WriteTableLookup();
  void WriteExchange();
  void WriteString();
  void WritePushAndPop();
  void WriteFrame();
  void WriteFloat();
  void WriteVectorControl();
  // of the operand size, REX.W, opcode
  void OpcodeOfSize(uint8_t opcode, uint64_t size);
  void Push(bool is_half);
  void Pop(bool is_half);
  // or operand, 1..127
  void MakeOdd(const Operand& operand, bool wide);

  Program& program_;
  Dice& dice_;
  CodeWriter& code_;
  InsnWriter& insns_;
};

}  // namespace clew::tracer::random_code

#endif  // CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_SEQUENCES_H_
