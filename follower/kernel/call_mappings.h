#ifndef CLEW_FOLLOWER_KERNEL_CALL_MAPPINGS_H_
#define CLEW_FOLLOWER_KERNEL_CALL_MAPPINGS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/inputs.h"
#include "common/linux/syscall_reads.h"
#include "machine/memory.h"

namespace clew::follower {

// Returns where the kernel has found room for what `call` maps, which has
// succeeded: nothing was mapped there. Empty: it was told where, or maps
// nothing.
MemoryRange RoomFoundBy(const SyscallInput& call);

// Whether nothing is mapped in a range.
bool IsFree(const machine::Memory& memory, const MemoryRange& range);

// Returns the number that machine::Memory::MapShared takes for the page at
// `offset` of a shared memory (SyscallInput::shared_memory).
uint64_t SharedPageNumber(uint64_t shared_memory, uint64_t offset);

// Maps memory, shared if it is a memory that has a number.
void MapMemory(const MemoryRange& range, uint32_t prot,
               std::optional<uint64_t> page_number, machine::Memory& memory);

// Maps, unmaps and protects as `call` did, which has succeeded. `brk` is the
// end of the heap. Returns where the contents are others than before.
std::vector<MemoryRange> ApplyMappings(const SyscallInput& call,
                                       machine::Memory& memory, uint64_t& brk);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_KERNEL_CALL_MAPPINGS_H_
