#ifndef CLEW_RECORDER_TRACER_CALLS_IN_PROGRAM_H_
#define CLEW_RECORDER_TRACER_CALLS_IN_PROGRAM_H_

#include <array>
#include <cstdint>
#include <optional>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::tracer {

// Makes system calls in a program, by a thread that is stopped there and is not
// about to receive a signal; none comes meanwhile. When this is destroyed, the
// program's code and the thread are as they were.
class CallsInProgram {
 public:
  // `process` and `memory` are borrowed. kSystem: ptrace(2) refuses, or the
  // code at the thread's address cannot be written.
  [[nodiscard]] static Result<CallsInProgram> Begin(
      TracedProcess& process, const recorder::GuestMemory& memory, Tid thread);
  CallsInProgram(CallsInProgram&& other) noexcept;
  CallsInProgram(const CallsInProgram&) = delete;
  CallsInProgram& operator=(const CallsInProgram&) = delete;
  CallsInProgram& operator=(CallsInProgram&&) = delete;
  ~CallsInProgram();

  // Returns the result. Fails with what the kernel says, as of `what`.
  [[nodiscard]] Result<uint64_t> Make(const char* what, uint64_t number,
                                      const std::array<uint64_t, 6>& args);

 private:
  using Code = std::array<uint8_t, 2>;
  // What is put back.
  struct Before {
    Code code;
    uint64_t mask = 0;  // of signals
  };
  CallsInProgram(TracedProcess& process, const recorder::GuestMemory& memory,
                 Tid thread, TraceeAddr ip, const Before& before)
      : process_(process),
        memory_(memory),
        thread_(thread),
        ip_(ip),
        before_(before) {}

  TracedProcess& process_;
  const recorder::GuestMemory& memory_;
  Tid thread_;
  TraceeAddr ip_;
  std::optional<Before> before_;  // nullopt: another one puts it back
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_CALLS_IN_PROGRAM_H_
