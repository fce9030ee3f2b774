#ifndef CLEW_RECORDER_NATIVE_START_DESCRIPTION_H_
#define CLEW_RECORDER_NATIVE_START_DESCRIPTION_H_

#include <sys/user.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/native/tracee/attachment.h"
#include "recorder/qemu/guest_memory.h"

// What start.pb says of a process whose threads are stopped.

namespace clew::recorder {

// In the order of their encodings, as gpr arrays have them.
std::array<uint64_t, 16> GprsOf(const user_regs_struct& registers);

// Returns what a thread has that has these registers, without its vectors.
StartThread DescribeRegisters(Tid thread, const user_regs_struct& registers);

// Returns the registers of a stopped thread, without its vectors.
// kUnsupported: its code is not of 64 bits.
[[nodiscard]] Result<StartThread> DescribeThread(const TracedProcess& process,
                                                 Tid thread);

// Describes a program that is at its first instruction: its thread, its heap.
[[nodiscard]] Result<StartState> DescribeProgram(const TracedProcess& process);

// Describes a process that runs: its threads with their vectors, its heap.
[[nodiscard]] Result<StartState> DescribeAttached(const TracedProcess& process,
                                                  const Attachment& attachment);

// Hides the vDSO from it, so that it asks the kernel for the time.
// kUnsupported: its auxiliary vector cannot be written.
[[nodiscard]] Status HideVdso(const StartState& program,
                              const GuestMemory& memory);

// Adds to `start` what the CPU has, and writes it with the memory of `regions`
// to `path`; a stack as large as it may grow.
[[nodiscard]] Status WriteDescription(const std::string& path,
                                      StartState& start, int32_t process,
                                      std::vector<GuestRegion> regions,
                                      const GuestMemory& memory);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_START_DESCRIPTION_H_
