#ifndef CLEW_RECORDER_STEPPER_STEPPER_H_
#define CLEW_RECORDER_STEPPER_STEPPER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "common/units.h"
#include "common/x86/branch.h"

namespace clew::recorder {

struct StepperOptions {
  std::vector<std::string> command;      // path first
  std::vector<std::string> environment;  // "NAME=value"
  // Instructions that a thread runs before the next one is chosen, in turn.
  uint32_t quantum_insns = 500;
  // kLimit when the program has not ended by then.
  uint64_t insns_max = 4'000'000;
  int host_cpu = 0;  // the program runs on it, and so does the caller
};

// An instruction that retired.
struct SteppedInsn {
  TraceeAddr ip;
  x86::BranchClass branch_class = x86::BranchClass::kNone;
  TraceeAddr fall_through;  // of branches: the next instruction in memory
  TraceeAddr target;        // of direct branches
  TraceeAddr next_ip;       // where the thread goes on; not for kFar
};

// Hears of everything a stepped program does, in order; one thread runs at a
// time. Between OnSwitchIn and OnSwitchOut all calls are about that thread.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // A thread exists. `parent` is 0 for the first one.
  virtual void OnThread(Tid thread, Tid parent) = 0;
  // It begins to run, `ip` first; or inside the kernel, after which comes
  // OnKernelReturn.
  virtual void OnSwitchIn(Tid thread) = 0;
  virtual void OnInsn(const SteppedInsn& insn) = 0;  // not kFar
  virtual void OnFarTransfer(const SteppedInsn& insn) = 0;
  // A signal or fault came before `ip` retired.
  virtual void OnInterrupt(TraceeAddr ip) = 0;
  // User mode is entered at `ip`.
  virtual void OnKernelReturn(TraceeAddr ip) = 0;
  // It stops, in the kernel (asleep, or `preempted`).
  virtual void OnSwitchOut(bool preempted) = 0;
  // It has ended.
  virtual void OnExit(Tid thread) = 0;
  // The memory map may have changed; `maps` is in the format of
  // /proc/<pid>/maps.
  virtual void OnMaps(const std::string& maps) = 0;
};

struct SteppedRun {
  int32_t process = 0;
  uint64_t insns = 0;
  Failure failure;  // kSignal where a signal ended it, else kNone
};

// Runs a program one instruction at a time under ptrace: slow (some 50,000
// instructions a second) and exact, the oracle of other sources. REP string
// instructions count once, with all iterations.
//
// Not supported: processes that the program forks (they run untraced), more
// than one program image (exec), signals that the program ignores. Programs
// must not use instructions whose results depend on being traced (the trap flag
// in PUSHF).
[[nodiscard]] Result<SteppedRun> RunStepped(const StepperOptions& options,
                                            StepObserver& observer);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_STEPPER_STEPPER_H_
