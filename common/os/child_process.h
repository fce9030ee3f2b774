#ifndef CLEW_COMMON_OS_CHILD_PROCESS_H_
#define CLEW_COMMON_OS_CHILD_PROCESS_H_

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/os/fd.h"
#include "common/result.h"

// What every start of a child process needs. SpawnProgram serves where exec
// follows at once. These fork by themselves, since they do more in the child,
// and use the steps below:
//   daemon/loop/child, collector/jobs/confined_process enter a cell or a
//   confinement recorder/software/launch, recorder/perf_target   set variables,
//   or wait before exec solver/smt/z3_process                   goes on in this
//   program, no exec
// These share nothing with it: common/os/ptrace stops the child at its exec;
// daemon/source/inspector runs its own file and closes descriptors;
// daemon/core_handler/core_next is C, which the kernel starts as root;
// deploy/supervise links none of our libraries.

namespace clew {

struct Pipe {
  Fd read_end;
  Fd write_end;
};

// Both ends are closed by exec.
[[nodiscard]] Result<Pipe> MakePipe();

// Path of the program that `name` names: as it is with a '/' in it, otherwise
// the first regular file in PATH that we may execute. An empty element of PATH,
// which execvp(3) takes for the current folder, is passed over.
// kInvalidArgument: nowhere, or not executable.
[[nodiscard]] Result<std::string> FindProgram(const std::string& name);
// The same with `path` in the place of PATH; nullptr: it is not set.
[[nodiscard]] Result<std::string> FindProgramIn(const char* path,
                                                const std::string& name);

// While it lives, an interrupt from the terminal ends the child alone. One at a
// time, since the action of a signal belongs to the whole process.
class IgnoreInterrupt {
 public:
  IgnoreInterrupt();
  IgnoreInterrupt(const IgnoreInterrupt&) = delete;
  IgnoreInterrupt& operator=(const IgnoreInterrupt&) = delete;
  ~IgnoreInterrupt() { RestoreInChild(); }
  // Between fork and exec: async-signal-safe.
  void RestoreInChild() const;

 private:
  struct sigaction before_ = {};
};

struct SpawnOptions {
  // What becomes standard input, output and error; borrowed; -1: ours.
  int input = -1;
  int output = -1;
  int errors = -1;
  // SIGINT has its default action in the child, whatever it has here.
  bool default_interrupt = false;
  // Opens the message of a failure; empty: cannot run "name".
  std::string failure = {};
};

// Starts `arguments[0]`, found by PATH, without a shell. Fails with kSystem
// also if exec fails.
[[nodiscard]] Result<pid_t> SpawnProgram(
    const std::vector<std::string>& arguments, const SpawnOptions& options);

// Waits until our child has ended and reaps it; returns its wait status.
[[nodiscard]] Result<int> WaitForChild(pid_t child);

// A wait status as shells have it: 128 + number where a signal ended it.
int ExitStatusOf(int wait_status);

// In the child, between fork and exec: async-signal-safe.

// The kernel kills the child once the thread that forked it is gone. Returns
// false if `parent` is gone already. A change of user undoes it (prctl(2)).
[[nodiscard]] bool DieWithParent(pid_t parent);

// Sets both limits, or our own hard limit where that is lower: above it the
// kernel lets nobody without CAP_SYS_RESOURCE (setrlimit(2)). Returns false,
// with errno, if they cannot be set.
[[nodiscard]] bool SetLimit(__rlimit_resource resource, uint64_t soft,
                            uint64_t hard);

}  // namespace clew

#endif  // CLEW_COMMON_OS_CHILD_PROCESS_H_
