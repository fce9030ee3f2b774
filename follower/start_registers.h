#ifndef CLEW_FOLLOWER_START_REGISTERS_H_
#define CLEW_FOLLOWER_START_REGISTERS_H_

#include <cstdint>

#include "common/inputs.h"
#include "machine/registers.h"

namespace clew::follower {

// What a thread has in its registers at the beginning of a recording.
// `mxcsr_mask` is StartState's.
machine::Registers StartRegisters(const StartThread& start,
                                  uint32_t mxcsr_mask);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_START_REGISTERS_H_
