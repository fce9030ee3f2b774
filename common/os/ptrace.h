#ifndef CLEW_COMMON_OS_PTRACE_H_
#define CLEW_COMMON_OS_PTRACE_H_

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/units.h"

namespace clew {

// Why a traced thread stopped, or that it did not.
struct TraceeStop {
  enum class Kind : uint8_t {
    kRunning,  // it has not stopped
    kTrap,     // after a single step
    kSignal,   // about to receive `signal`
    kClone,    // inside clone(); `new_thread` exists and is stopped
    kExited,   // the thread ended with `exit_status`
    kKilled,   // the process was ended by `signal`
  };
  Kind kind = Kind::kRunning;
  int signal = 0;
  int exit_status = 0;
  Tid new_thread;
};

// A process that this one started and traces, with all its threads. Killed and
// reaped when destroyed; moves. Processes that it forks are not traced.
//
// All calls must come from the thread that called Start (as ptrace wants it).
// Errors are kSystem unless a line says otherwise.
class TracedProcess {
 public:
  // Starts `command` (its path first) with `environment` ("NAME=value"), at
  // fixed addresses (no randomisation), it and the calling thread bound to the
  // CPU `host_cpu`: then a step costs a third. Returns once the program is at
  // its first instruction.
  [[nodiscard]] static Result<TracedProcess> Start(
      const std::vector<std::string>& command,
      const std::vector<std::string>& environment, int host_cpu);
  TracedProcess(TracedProcess&& other) noexcept;
  TracedProcess& operator=(TracedProcess&& other) noexcept;
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;
  ~TracedProcess();

  // The process and its first thread have the same number.
  int32_t process() const { return process_; }
  Tid first_thread() const { return Tid(process_); }

  // Lets a stopped thread execute one instruction; `signal` is delivered first
  // unless 0.
  [[nodiscard]] Status SingleStep(Tid thread, int signal);
  // Waits for the next stop of `thread`; with `may_block` clear, kRunning if
  // there is none yet.
  [[nodiscard]] Result<TraceeStop> Wait(Tid thread, bool may_block);
  // True if the kernel has the thread asleep, or keeps it after its end until
  // all others have ended.
  [[nodiscard]] bool IsAsleep(Tid thread) const;

  [[nodiscard]] Result<user_regs_struct> Registers(Tid thread) const;
  [[nodiscard]] Result<TraceeAddr> InsnPointer(Tid thread) const;
  // Reads as much of `bytes` as is mapped from `addr` on; returns how much.
  [[nodiscard]] size_t ReadMemory(TraceeAddr addr,
                                  std::span<uint8_t> bytes) const;
  // /proc/<pid>/maps.
  [[nodiscard]] std::string Maps() const;

 private:
  explicit TracedProcess(int32_t process) : process_(process) {}
  [[nodiscard]] Status FinishExec(const std::string& name);

  int32_t process_ = 0;  // 0: nothing to end
};

}  // namespace clew

#endif  // CLEW_COMMON_OS_PTRACE_H_
