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
  kWatchpoint,  // the last retired instruction touched `watch`
};

struct RunStop {
  RunEnd end = RunEnd::kPosition;
  Watchpoint watch;  // only for kWatchpoint
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
  // After the last instruction of the schedule; fixed.
  virtual Position end() const = 0;
  virtual std::unique_ptr<State> Save() const = 0;
  // REQUIRES: `state` comes from Save() of this target.
  virtual void Load(const State& state) = 0;
  // Retires instructions until position `until`, or the first stop before it.
  // A breakpoint stops before its instruction, the one at the first position
  // too unless `pass_first`; never at `until` itself. A watchpoint stops after
  // the instruction, and only a change of value counts for WatchKind::kWrite.
  // An error is a divergence from the recording: nothing is claimed then but
  // that Load still works.
  // REQUIRES: position() <= until <= end().
  [[nodiscard]] virtual Result<RunStop> Run(Position until,
                                            const StopPoints& points,
                                            bool pass_first) = 0;

  // --- The schedule, known without running.
  // Who retires the instruction at `position`; nullopt at the end.
  virtual std::optional<Tid> ThreadAt(Position position) const = 0;
  // The last position before `position` at which `thread` retires.
  virtual std::optional<Position> LastBefore(Tid thread,
                                             Position position) const = 0;
  // The first position at or after `position` at which `thread` retires.
  virtual std::optional<Position> FirstFrom(Tid thread,
                                            Position position) const = 0;

  // --- The state at position().
  // Threads that exist now, the oldest first; never empty.
  virtual std::vector<TargetThread> Threads() const = 0;
  // nullopt: no such thread now.
  virtual std::optional<machine::Registers> ReadRegisters(Tid thread) const = 0;
  // How many bytes from `addr` on could be read, up to bytes.size().
  virtual size_t ReadMemory(TraceeAddr addr,
                            std::span<std::byte> bytes) const = 0;

  // --- The recording.
  virtual std::string ExecPath() const = 0;  // as recorded
  // The auxiliary vector that the kernel gave the program.
  virtual std::vector<std::byte> Auxv() const = 0;
  // How the run ended: what is to be seen at end().
  virtual Failure failure() const = 0;
  // The fault that the failing thread's next instruction raises; kNone: it
  // raises none, the signal was sent. nullopt: not at end(), no failure by a
  // signal, or an instruction that the machine does not know.
  virtual std::optional<machine::Fault> FailingFault() const = 0;

  // Where output goes as its system calls are replayed; nullptr: nowhere.
  // Borrowed.
  virtual void set_output(OutputSink* sink) = 0;
};

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_TARGET_H_
