#ifndef CLEW_FOLLOWER_CALL_CHECK_H_
#define CLEW_FOLLOWER_CALL_CHECK_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "machine/memory.h"
#include "machine/registers.h"

namespace clew::follower {

// Whether a system call is the recorded one. Each returns what differs, for
// people; nullopt: nothing does.

// Its number, and the bits of its arguments that count.
std::optional<std::string> OtherArguments(const machine::Registers& registers,
                                          const SyscallInput& call);
// What it is given to read, if SyscallInput::read_digest tells of it.
std::optional<std::string> OtherReads(const machine::Memory& memory,
                                      const SyscallInput& call);

// The bytes that an output call is given to write, at most 64 MiB. Fails with
// kInvalidArgument if they are not mapped.
[[nodiscard]] Result<std::vector<std::byte>> OutputOf(
    const machine::Memory& memory, const SyscallInput& call);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_CALL_CHECK_H_
