#ifndef CLEW_FOLLOWER_KERNEL_CALL_WRITES_H_
#define CLEW_FOLLOWER_KERNEL_CALL_WRITES_H_

#include <span>
#include <vector>

#include "common/inputs.h"
#include "machine/memory.h"

namespace clew::follower {

// Returns what the kernel writes into the process in `call`, which returns:
//
// - of contents of what it mapped, and whose mappings were applied, those that
//   are mapped nowhere else: else memory has what the program has stored there
//   since (SyscallInput::shared_memory);
// - of what it wrote to a file, what the process has mapped of that
//   (SyscallInput::written_offset);
// - in all other cases SyscallInput::writes.
//
// Uses `room` for the result if it needs any.
std::span<const MemoryWrite> WritesOf(const SyscallInput& call,
                                      const machine::Memory& memory,
                                      std::vector<MemoryWrite>& room);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_KERNEL_CALL_WRITES_H_
