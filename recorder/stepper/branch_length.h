#ifndef CLEW_RECORDER_STEPPER_BRANCH_LENGTH_H_
#define CLEW_RECORDER_STEPPER_BRANCH_LENGTH_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace clew::recorder {

inline constexpr size_t kInsnBytesMax = 15;

// How many of `code` the branch or far transfer at its beginning has; 0 if the
// instruction there is none, or is not whole. (The length of other instructions
// shows when they have been stepped over.)
size_t BranchLength(std::span<const uint8_t> code);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_STEPPER_BRANCH_LENGTH_H_
