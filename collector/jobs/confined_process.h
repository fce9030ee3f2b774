#ifndef CLEW_COLLECTOR_JOBS_CONFINED_PROCESS_H_
#define CLEW_COLLECTOR_JOBS_CONFINED_PROCESS_H_

#include <sys/types.h>

#include <utility>

#include "collector/jobs/confined_child.h"
#include "common/os/fd.h"
#include "common/result.h"

namespace clew::collector {

// A process that runs a program as RunConfinedChild says, killed with its
// session and reaped for certain. Moves; not thread-safe.
class ConfinedProcess {
 public:
  // After success the program runs. kSystem: which step failed.
  [[nodiscard]] static Result<ConfinedProcess> Start(
      const ConfinedChildRequest& request);
  ConfinedProcess(ConfinedProcess&& other) noexcept;
  ConfinedProcess& operator=(ConfinedProcess&&) = delete;
  ~ConfinedProcess();

  // Readable once it has ended.
  int pid_fd() const { return pid_fd_.get(); }
  // What it prints; each may be taken once.
  Fd TakeOutput() { return std::move(output_); }
  Fd TakeErrors() { return std::move(errors_); }

  struct Ending {
    int status = 0;  // as wait4(2) has it
    double cpu_seconds = 0;
  };
  // As it ended by itself, or as killed here; the rest of its session with it.
  // REQUIRES: called once.
  Ending End();

 private:
  explicit ConfinedProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;  // -1: reaped
  Fd pid_fd_;
  Fd output_;
  Fd errors_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_JOBS_CONFINED_PROCESS_H_
