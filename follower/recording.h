#ifndef CLEW_FOLLOWER_RECORDING_H_
#define CLEW_FOLLOWER_RECORDING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "common/stream.h"
#include "follower/process.h"
#include "follower/register_comparison.h"
#include "follower/tape.h"
#include "follower/timed_streams.h"
#include "machine/cpu.h"

namespace clew::follower {

// Memory as the core dump has it; `bytes` is borrowed.
struct CoreMemory {
  uint64_t addr = 0;
  std::span<const std::byte> bytes;
};

// One recording, as solving and replaying need it: plain values, and how to
// pull its streams and inputs from the beginning, as often as wanted.
struct Recording {
  StartState start;
  Failure failure;
  uint64_t clock_slack_ticks = 0;
  std::vector<CoreMemory> core_dump;  // empty: there is no core dump
  // Of the core dump: the failing thread's, and the others' if those are as
  // they were at the failure.
  std::vector<DumpedRegisters> dumped_registers;
  // Why the process may have read what the input log lacks, one phrase for each
  // cause ("/tmp/db is mapped shared and another process may write it"). While
  // there is one, evidence that contradicts itself proves nothing.
  std::vector<std::string> unlogged_inputs;
  // Nothing of the trace or its sideband is known to be lost. If something is,
  // evidence that contradicts itself may come from that.
  bool whole = true;
  // Its threads ran at once on a processor: they may see each other's stores
  // later than on the machine, so that no order is possible on the machine
  // proves nothing about it; and a system call may take effect at any time
  // while it is made.
  bool ran_at_once = false;
  // How stores wait when the recording is solved, checked and replayed;
  // nullptr: they do not. Borrowed.
  const machine::MemoryModel* model = nullptr;
  std::function<Result<std::unique_ptr<StreamSource>>()> open_streams;
  std::function<Result<std::unique_ptr<InputSource>>()> open_inputs;
};

// A recording opened for one use: owns the sources, the tape and the code
// cache, and the process at its first recorded instruction. Copies of start()
// must not outlive the session. It need not be movable: it is held by a
// unique_ptr.
class OpenedRecording {
 public:
  // Opens the sources. Fails as they do and as Process::Start does.
  [[nodiscard]] static Result<std::unique_ptr<OpenedRecording>> Open(
      const Recording& recording, TapeLimits limits = {},
      ProcessOptions options = {});

  const Process& start() const { return *start_; }
  Tape& tape() { return *tape_; }

 private:
  OpenedRecording() = default;
  std::unique_ptr<StreamSource> streams_;
  std::unique_ptr<InputSource> call_times_;
  std::unique_ptr<TimedStreams> timed_streams_;
  std::unique_ptr<InputSource> inputs_;
  std::unique_ptr<Tape> tape_;
  machine::CodeCache code_;
  std::unique_ptr<Process> start_;
};

// How much of the core dump's memory a process has, byte for byte. What it has
// not mapped counts as zeros.
struct MemoryComparison {
  uint64_t bytes_compared = 0;
  uint64_t bytes_equal = 0;
  struct Difference {
    uint64_t addr = 0;  // first byte of a run of differing bytes
    uint64_t size_bytes = 0;
  };
  std::vector<Difference> differences;  // the first kDifferencesMax
  static constexpr size_t kDifferencesMax = 64;
};
MemoryComparison CompareMemory(const machine::Memory& memory,
                               std::span<const CoreMemory> core_dump);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_RECORDING_H_
