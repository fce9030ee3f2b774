#ifndef CLEW_REPLAYER_TARGET_H_
#define CLEW_REPLAYER_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "common/units.h"
#include "common/x86/features.h"
#include "machine/cpu.h"
#include "machine/registers.h"
#include "replayer/stop_points.h"

namespace clew::replayer {

// Instructions that all threads together have retired since the recording
// began, in the order of the schedule. Position p is the moment just before the
// p-th one (counted from 0) retires; a position names the whole state.
using Position = uint64_t;

struct TargetThread {
  Tid tid;           // as recorded
  std::string name;  // may be empty
};

enum class RunEnd : uint8_t {
  kPosition,    // `until` reached
  kBreakpoint,  // the next instruction is at a breakpoint
  kWatchpoint,  // the last retired instruction touched `watch`, or a store
                // left its buffer and changed it
};

struct RunStop {
  RunEnd end = RunEnd::kPosition;
  Watchpoint watch;  // only for kWatchpoint
  // Whose store it was that left its buffer; nullopt: it was the instruction.
  std::optional<Tid> store_of = {};
};

// Bytes that the program wrote to its standard output or error.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  virtual void OnOutput(std::span<const std::byte> bytes) = 0;
};

// A recorded run that can be executed forward along its schedule, and looked
// at between any two instructions. Deterministic: from equal states the same
// Run leads to equal states. Nothing outside can change what it does.
//
// Not thread-safe.
class ReplayTarget {
 public:
  // A snapshot; cheap, because memory is shared until written.
  class State {
   public:
    virtual ~State() = default;
  };

  virtual ~ReplayTarget() = default;

  // --- Time.
  virtual Position position() const = 0;
  // Returns the position after the last instruction of the schedule, which
  // never changes.
  virtual Position end() const = 0;
  virtual std::unique_ptr<State> Save() const = 0;
  // Puts the state back. REQUIRES: it comes from Save() of this target.
  virtual void Load(const State& state) = 0;
  // Retires instructions until position `until`, or the first stop before it. A
  // breakpoint stops before its instruction, the one at the first position too
  // unless `pass_first`; never at `until` itself. A watchpoint stops after the
  // instruction, and only a change of value counts for WatchKind::kWrite. Fails
  // if the run diverges from the recording or cannot be followed further;
  // nothing is promised then but that Load still works. REQUIRES: position() <=
  // until <= end().
  [[nodiscard]] virtual Result<RunStop> Run(Position until,
                                            const StopPoints& points,
                                            bool pass_first) = 0;

  // --- The schedule, known without running.
  // Returns who retires the instruction at `position`; nullopt at the end.
  virtual std::optional<Tid> ThreadAt(Position position) const = 0;
  // Returns the last position before `position` at which `thread` retires, if
  // any.
  virtual std::optional<Position> LastBefore(Tid thread,
                                             Position position) const = 0;
  // Returns the first position at or after `position` at which `thread`
  // retires, if any.
  virtual std::optional<Position> FirstFrom(Tid thread,
                                            Position position) const = 0;

  // --- The state at position().
  // Returns the threads that exist now, the oldest first; at least one.
  virtual std::vector<TargetThread> Threads() const = 0;
  // Returns nullopt if there is no such thread now.
  virtual std::optional<machine::Registers> ReadRegisters(Tid thread) const = 0;
  // Reads memory from `addr` on, as all threads see it. Returns how many bytes
  // could be read, up to bytes.size().
  virtual size_t ReadMemory(TraceeAddr addr,
                            std::span<std::byte> bytes) const = 0;
  // The same as `thread` sees it: with the stores of it that others do not see
  // yet.
  virtual size_t ReadMemoryOf(Tid /*thread*/, TraceeAddr addr,
                              std::span<std::byte> bytes) const {
    return ReadMemory(addr, bytes);
  }

  // --- The recording.
  virtual std::string ExecPath() const = 0;  // as recorded
  // Returns the auxiliary vector that the kernel gave the program.
  virtual std::vector<std::byte> Auxv() const = 0;
  // Returns what the recorded CPU has.
  virtual x86::FeatureSet cpu_features() const = 0;
  // Returns how the run ended: what is to be seen at end().
  virtual Failure failure() const = 0;
  // Returns the fault that the failing thread's next instruction raises; kNone
  // if it raises none because the signal was sent. Returns nullopt if this is
  // not end(), the failure is not a signal, its thread has no stream, or the
  // machine does not know the instruction.
  virtual std::optional<machine::Fault> FailingFault() const = 0;

  // Sets where output goes as its system calls are replayed; nullptr: nowhere.
  // Borrowed.
  virtual void set_output(OutputSink* sink) = 0;
};

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_TARGET_H_
