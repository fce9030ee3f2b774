#ifndef CLEW_BENCH_BPF_INPUTS_PROCESS_H_
#define CLEW_BENCH_BPF_INPUTS_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "bench/bpf_inputs/threads.h"
#include "common/os/fd.h"
#include "common/result.h"

namespace clew::bench {

// The load as a child process, which is killed when this is destroyed.
class LoadProcess {
 public:
  // Returns once all of its threads wait. kSystem. `plan` must outlive it.
  [[nodiscard]] static Result<std::unique_ptr<LoadProcess>> Start(
      const CallPlan& plan);
  LoadProcess(const LoadProcess&) = delete;
  LoadProcess& operator=(const LoadProcess&) = delete;
  ~LoadProcess();

  pid_t process() const { return process_; }
  // The threads begin.
  [[nodiscard]] Status LetGo();
  // Whether all is done, and the process has ended. Does not wait.
  // kUnsupported: it ended otherwise than it should.
  [[nodiscard]] Result<bool> HasEnded();

  // Once it has ended. By its own count, from LetGo on.
  uint64_t calls_made() const;
  // From when the threads were to begin until the last one was done, or its
  // last slice was to end.
  double seconds() const;
  // Processor time of the process, but for what it took to begin.
  double cpu_seconds() const { return cpu_seconds_; }

 private:
  explicit LoadProcess(const CallPlan& plan) : plan_(plan) {}
  [[nodiscard]] Status Fork();
  [[nodiscard]] Status AwaitThreads();

  const CallPlan& plan_;
  LoadBoard* board_ = nullptr;
  pid_t process_ = -1;  // -1: not there, or reaped
  Fd gate_;             // a byte lets a thread go
  Fd end_;              // a byte lets the process end
  bool is_told_to_end_ = false;
  double cpu_seconds_ = 0;
};

}  // namespace clew::bench

#endif  // CLEW_BENCH_BPF_INPUTS_PROCESS_H_
