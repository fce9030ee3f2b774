#ifndef CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_DETOURS_H_
#define CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_DETOURS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/recorder/tracer/code_writer.h"
#include "tests/recorder/tracer/random_code_insns.h"
#include "tests/recorder/tracer/random_code_program.h"
#include "tests/recorder/tracer/random_code_sequences.h"
#include "tests/recorder/tracer/random_code_transfers.h"

namespace clew::tracer::random_code {

// Writes transfers behind which control comes to what is written next: branches
// over instructions, loops, calls of functions, system calls. RSP is as before.
class DetourWriter {
 public:
  // All must outlive it. There will be `functions` of them.
  DetourWriter(Program& program, InsnWriter& insns, SequenceWriter& sequences,
               TransferWriter& transfers, size_t functions);

  void WriteAny();
  // A function calls those of higher numbers. REQUIRES: each is written once.
  void WriteFunction(size_t number);

 private:
  struct Function {
    Label entry{};
    uint64_t argument_bytes = 0;  // which it pops
  };

  void WriteSkip();
  void WriteBackAndForth();
  void WriteCountedLoop();
  void WriteDecrementLoop();
  void WriteOwnTarget();
  void WriteCall();
  void WriteTransferToFunction(const Function& function);
  void WriteOwnAddress();
  void WriteSystemCall();
  void WriteSkippedLock();
  void WriteOverlap();
  void WriteJumpIf(Label target, bool is_short);
  void WriteJump(Label target, bool is_short);

  Program& program_;
  Dice& dice_;
  CodeWriter& code_;
  InsnWriter& insns_;
  SequenceWriter& sequences_;
  TransferWriter& transfers_;
  std::vector<Function> functions_;
  size_t first_callable_ = 0;
};

}  // namespace clew::tracer::random_code

#endif  // CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_DETOURS_H_
