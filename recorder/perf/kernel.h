#ifndef CLEW_RECORDER_PERF_KERNEL_H_
#define CLEW_RECORDER_PERF_KERNEL_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "common/os/fd.h"
#include "common/result.h"

namespace clew::recorder::perf {

// Mapped memory, unmapped when destroyed. Moves; the bytes stay where they are.
class MappedMemory {
 public:
  MappedMemory() = default;
  explicit MappedMemory(std::span<std::byte> bytes) : bytes_(bytes) {}
  MappedMemory(MappedMemory&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory();
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// The system calls that a recording needs; a test may put itself in between.
// Errors are kSystem with the errno and begin with what was tried. Not
// thread-safe.
class PerfKernel {
 public:
  virtual ~PerfKernel() = default;
  // perf_event_open for `thread` (-1: all) on the CPU `core`.
  [[nodiscard]] virtual Result<Fd> OpenEvent(const perf_event_attr& attr,
                                             int32_t thread, int core) = 0;
  // The same for all threads of a cgroup (PERF_FLAG_PID_CGROUP): of cgroup v2,
  // or of the perf_event controller of v1. `folder` is the open folder.
  [[nodiscard]] virtual Result<Fd> OpenCgroupEvent(const perf_event_attr& attr,
                                                   const Fd& folder, int core);
  // PERF_EVENT_IOC_ID: the SampleId::event_id of its records.
  [[nodiscard]] virtual Result<uint64_t> EventId(const Fd& event);
  [[nodiscard]] virtual Result<MappedMemory> Map(const Fd& event,
                                                 uint64_t offset, size_t bytes,
                                                 bool writable) = 0;
  // PERF_EVENT_IOC_...; `what` names it in messages.
  [[nodiscard]] virtual Status Control(const Fd& event, unsigned long request,
                                       unsigned long argument,
                                       std::string_view what) = 0;
  // epoll: a set of events, and waiting until one of them wakes us.
  [[nodiscard]] virtual Result<Fd> MakePoller() = 0;
  [[nodiscard]] virtual Status Watch(const Fd& poller, const Fd& event) = 0;
  // True if there was a wake-up within `timeout_ms`; false also if a signal
  // came.
  [[nodiscard]] virtual Result<bool> Wait(const Fd& poller, int timeout_ms) = 0;
  // Returns once every writer that was at work on a ring has ended: membarrier
  // (MEMBARRIER_CMD_GLOBAL) waits for an RCU grace period, and the kernel
  // writes to rings within RCU read sections (kernel/events/ring_buffer.c,
  // perf_output_begin). Takes some milliseconds.
  [[nodiscard]] virtual Status WaitForWriters() = 0;
};

// The kernel that runs us. Lives as long as the program.
PerfKernel& RealPerfKernel();

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_KERNEL_H_
