#ifndef CLEW_FOLLOWER_START_REGISTERS_H_
#define CLEW_FOLLOWER_START_REGISTERS_H_

#include "common/inputs.h"
#include "machine/registers.h"

namespace clew::follower {

// What a thread of `state` has in its registers at the beginning of a
// recording.
machine::Registers StartRegisters(const StartThread& start,
                                  const StartState& state);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_START_REGISTERS_H_
