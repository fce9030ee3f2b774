#ifndef CLEW_FOLLOWER_KERNEL_CALL_CHECK_H_
#define CLEW_FOLLOWER_KERNEL_CALL_CHECK_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/linux/syscall_reads.h"
#include "common/result.h"
#include "machine/memory.h"
#include "machine/registers.h"

namespace clew::follower {

// Where a system call has its arguments: x86-64 ABI, "Linux Conventions",
// "Calling Conventions".
inline constexpr std::array<Gpr, 6> kSyscallArguments = {kRdi, kRsi, kRdx,
                                                         kR10, kR8,  kR9};

// The memory that a system call is given to read (ReadsOfSyscall), and whether
// it is what the recorded one was given.
struct CallReads {
  std::vector<MemoryRange> ranges;
  bool as_recorded = false;
};
CallReads ReadsOf(const machine::Memory& memory, const SyscallInput& call);

// These compare a system call with the recorded one. Each returns what differs,
// for people, or nullopt if nothing does.

// Compares its number, and the bits of its arguments that count.
std::optional<std::string> OtherArguments(const machine::Registers& registers,
                                          const SyscallInput& call);
// Compares what it is given to read, if SyscallInput::read_digest is set.
std::optional<std::string> OtherReads(const machine::Memory& memory,
                                      const SyscallInput& call);

// Returns the bytes that an output call is given to write, at most 64 MiB.
// Fails with kInvalidArgument if they are not mapped.
[[nodiscard]] Result<std::vector<std::byte>> OutputOf(
    const machine::Memory& memory, const SyscallInput& call);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_KERNEL_CALL_CHECK_H_
