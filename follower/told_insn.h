#ifndef CLEW_FOLLOWER_TOLD_INSN_H_
#define CLEW_FOLLOWER_TOLD_INSN_H_

#include <cstddef>
#include <optional>
#include <span>

#include "common/inputs.h"
#include "common/stream.h"
#include "machine/registers.h"

namespace clew::follower {

// Returns what the instruction of these bytes gave, of a recording whose input
// log does not say; nullopt if nobody knows (RDRAND, RDSEED). `registers` are
// those before it, and it ran on `core`, in `block`.
//
// RDTSC reads the earliest time at which the block may have run. So within a
// thread time never goes back, and what was read is too early by no more than
// the block's time is unknown.
std::optional<InsnInput> ToldResult(const ToldCpu& cpu,
                                    std::span<const std::byte> insn,
                                    const machine::Registers& registers,
                                    const StreamBlock& block, CoreId core);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_TOLD_INSN_H_
