#ifndef CLEW_RECORDER_NATIVE_PROGRAM_RUN_H_
#define CLEW_RECORDER_NATIVE_PROGRAM_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/result.h"
#include "recorder/native/native_program.h"
#include "recorder/native/native_state.h"
#include "recorder/native/tracee/attachment.h"

namespace clew::recorder {

// Lets a program go from where it is to its end, recorded.
class ProgramRun {
 public:
  ProgramRun() = default;
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;
  virtual ~ProgramRun() = default;

  // Returns how it ends: it has not ended yet, and all threads are stopped in
  // the program, with its registers. nullopt: the process runs another program,
  // and is at its first instruction.
  [[nodiscard]] virtual Result<std::optional<NativeEnd>> Run() = 0;
  // How often another thread went on.
  virtual uint64_t handovers() const = 0;
  // The raw files are closed: what they need besides to be a recording, told in
  // `outcome`. REQUIRES: Run has returned how it ends.
  [[nodiscard]] virtual Status Finish(Outcome& outcome) = 0;
  // Takes out of the program what it has of this. REQUIRES: Run has returned
  // how it ends; `threads` are all that it has, stopped where it is to go on.
  [[nodiscard]] virtual Status Leave(
      const std::vector<Attachment::Stopped>& threads) = 0;
};

// Makes what lets the program go that `state` has, which is described by
// `program`; both outlive it.
using RunMaker = std::function<Result<std::unique_ptr<ProgramRun>>(
    NativeState& state, NativeProgram& program)>;

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_PROGRAM_RUN_H_
