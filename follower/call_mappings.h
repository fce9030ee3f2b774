#ifndef CLEW_FOLLOWER_CALL_MAPPINGS_H_
#define CLEW_FOLLOWER_CALL_MAPPINGS_H_

#include <cstdint>

#include "common/inputs.h"
#include "machine/memory.h"

namespace clew::follower {

// Maps, unmaps and protects as `call` did, which has succeeded. `brk` is the
// end of the heap.
void ApplyMappings(const SyscallInput& call, machine::Memory& memory,
                   uint64_t& brk);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_CALL_MAPPINGS_H_
