#ifndef CLEW_RECORDER_BPF_INPUT_SOURCE_H_
#define CLEW_RECORDER_BPF_INPUT_SOURCE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "recorder/bpf/input_event.h"

// System calls of running programs, by eBPF: arguments, results, and the memory
// that the kernel wrote, bounded by a budget; what does not fit is counted, in
// place. docs/design/production.md says what cannot be seen this way.

namespace clew::recorder::bpf {

struct InputOptions {
  // What to watch: one of the two. Processes (thread group ids), in the first
  // PID namespace; more can be added later.
  std::vector<int32_t> processes = {};
  // Or the folder of a cgroup (v2), with all below it.
  std::string cgroup = {};
  // Also processes that watched ones fork. A cgroup always has them.
  bool follow_children = true;
  // Also what the program outputs (write, send, ...), as digests.
  bool outputs = true;
  uint64_t ring_bytes = 4 << 20;  // a power of two, at least 64 KiB
  // Of events and memory, over all CPUs, in steps of 100 ms. At least 10 KiB.
  uint64_t bytes_per_second = 64 << 20;
  uint32_t call_bytes_max = 256 << 10;  // of memory that one call wrote or read
  uint32_t threads_max = 8192;          // watched at once; 1 to 1 M
};

// What became of every call and signal of the watched threads. After Finish
// `units` == `reported` + the sum of `lost`.
struct KernelInputCounts {
  uint64_t units = 0;  // calls and signals seen
  uint64_t reported = 0;
  std::array<uint64_t, kRawCauses> lost = {};     // not reported, by RawCause
  std::array<uint64_t, kRawCauses> partial = {};  // InputCall::unknown
  // Beside these: calls of threads beyond threads_max, at entry and at return.
  uint64_t untracked = 0;
  uint64_t broken = 0;  // events that contradicted each other: a bug

  uint64_t lost_total() const;
};

// Whether calls can be watched here. kUnsupported or kSystem, naming what is
// missing and what to do: no BTF, no permission, a PID namespace of its own, no
// tracepoint. Loads the BPF program, which takes up to a second.
[[nodiscard]] Status ProbeInputs();

// Not thread-safe.
class KernelInputSource {
 public:
  // Loads the program; nothing is watched until Start. kInvalidArgument: the
  // options contradict each other. Else as ProbeInputs.
  [[nodiscard]] static Result<std::unique_ptr<KernelInputSource>> Open(
      const InputOptions& options);
  virtual ~KernelInputSource() = default;

  // Watches `process` and, from now on, what it forks. REQUIRES: no cgroup.
  [[nodiscard]] virtual Status AddProcess(int32_t process) = 0;
  [[nodiscard]] virtual Status Start() = 0;
  // Waits until an eighth of the ring is full or for `timeout_ms`; returns true
  // if it was the ring. Little traffic does not wake the caller, so Drain must
  // be called now and then.
  [[nodiscard]] virtual Result<bool> Wait(int timeout_ms) = 0;
  // Becomes readable when Wait would return true; for an event loop.
  virtual int fd() const = 0;
  // Hands on what the ring has, at most as much as it holds, so that a flood
  // does not keep it for good. Memory is allocated only while there are more
  // threads, or longer calls, than ever before.
  [[nodiscard]] virtual Status Drain(InputSink& sink) = 0;
  // Ends the watch and hands on the rest, then what threads were in the middle
  // of (as calls that did not return) and what was lost last. Afterwards only
  // counts() may be called.
  [[nodiscard]] virtual Status Finish(InputSink& sink) = 0;
  virtual KernelInputCounts counts() const = 0;
};

}  // namespace clew::recorder::bpf

#endif  // CLEW_RECORDER_BPF_INPUT_SOURCE_H_
