#ifndef CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_INSNS_H_
#define CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_INSNS_H_

#include <cstddef>
#include <cstdint>

#include "tests/recorder/tracer/code_writer.h"
#include "tests/recorder/tracer/random_code_forms.h"
#include "tests/recorder/tracer/random_code_program.h"

namespace clew::tracer::random_code {

// Writes single instructions at random, with what loads the addresses of their
// operands. Between them, registers and scratch data have any values.
class InsnWriter {
 public:
  // `program` must outlive it.
  explicit InsnWriter(Program& program);

  // An instruction of any form; flags change as it wants.
  void WriteAny();
  // As many of them.
  void WriteSome(uint64_t count);

  uint8_t FreeRegister() { return registers_.Free(); }
  // Loads a register without a change of flags.
  void LoadNumber(uint8_t reg, uint64_t number);
  void LoadAddress(uint8_t reg, uint64_t addr);
  void LoadLabel(uint8_t reg, Label label);
  // An operand that names `addr`, by all ways there are; writes what loads its
  // registers.
  Operand OperandAt(uint64_t addr);
  // Likewise, scratch data: in the segments, or at the stack.
  Operand ScratchOperand(size_t bytes, bool is_aligned);
  // [rsp + displacement]
  Operand StackOperand(int64_t displacement);
  // An instruction with this operand.
  void Write(uint8_t opcode, uint8_t reg, const Operand& rm, bool wide = true) {
    WriteWithImmediate(opcode, reg, rm, wide, 0, 0);
  }
  void WriteWithImmediate(uint8_t opcode, uint8_t reg, const Operand& rm,
                          bool wide, uint8_t bytes, uint64_t immediate);
  // Adds a REX that changes nothing, now and then, where ModRM.reg extends the
  // opcode and the operand has 64 bits in any case (transfers, PUSH, POP).
  void AddIdleRex64(Insn& insn);

 private:
  const Form& RandomForm();
  void WriteForm(const Form& form);
  size_t ChooseSize(const Form& form, Insn& insn);
  void ChooseVectorFields(const Form& form, Insn& insn);
  void ChooseRm(const Form& form, size_t size, Insn& insn);
  void ChooseReg(const Form& form, Insn& insn);
  void ChooseVvvv(const Form& form, Insn& insn);
  void ChooseImmediate(const Form& form, size_t size, Insn& insn);
  Operand Based(uint64_t addr);
  Operand Indexed(uint64_t addr);
  Operand Anywhere();
  // Prefixes and bits that change nothing.
  void Decorate(const Form& form, Insn& insn);
  void AddIdlePrefix(const Form& form, Insn& insn);
  void AddIdleRex(const Form& form, Insn& insn);

  Program& program_;
  Dice& dice_;
  CodeWriter& code_;
  Registers& registers_;
  const Forms forms_;
};

}  // namespace clew::tracer::random_code

#endif  // CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_INSNS_H_
