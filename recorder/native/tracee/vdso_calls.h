#ifndef CLEW_RECORDER_NATIVE_TRACEE_VDSO_CALLS_H_
#define CLEW_RECORDER_NATIVE_TRACEE_VDSO_CALLS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// The functions of the vDSO of a process, made to ask the kernel: a recording
// has what system calls return, and nothing of what the kernel writes into the
// pages from which these functions read the time.
class VdsoCalls {
 public:
  // Replaces them. Threads that are in the vDSO go on until they are out of it.
  // REQUIRES: `threads` are all that there are, are stopped, and block their
  // signals. kUnsupported:
  // the process has no vDSO, or another one than this process.
  [[nodiscard]] static Result<VdsoCalls> Install(
      TracedProcess& process, const std::vector<Tid>& threads,
      const GuestMemory& memory);

  // Of a SYSCALL instruction.
  uint64_t syscall_addr() const;
  // The vDSO as it is now: a whole ELF file.
  [[nodiscard]] Result<std::vector<std::byte>> Image(
      const GuestMemory& memory) const;
  // Whether the process, which may run another program by now, has them.
  [[nodiscard]] bool IsIn(const TracedProcess& process,
                          const GuestMemory& memory) const;
  // Puts the functions back. REQUIRES: as Install.
  [[nodiscard]] Status Remove(TracedProcess& process,
                              const std::vector<Tid>& threads,
                              const GuestMemory& memory) const;

 private:
  static constexpr size_t kCallBytes = 8;
  static constexpr size_t kSyscallAt = 5;  // of these
  struct Replaced {
    uint64_t addr = 0;
    uint32_t number = 0;  // of the call
    std::array<std::byte, kCallBytes> was = {};
  };
  VdsoCalls(uint64_t begin, uint64_t size_bytes)
      : begin_(begin), size_bytes_(size_bytes) {}
  [[nodiscard]] Status StepOut(TracedProcess& process,
                               const std::vector<Tid>& threads) const;
  [[nodiscard]] Status Replace(const char* name, uint32_t number,
                               const GuestMemory& memory);

  uint64_t begin_;
  uint64_t size_bytes_;
  std::vector<Replaced> replaced_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_TRACEE_VDSO_CALLS_H_
