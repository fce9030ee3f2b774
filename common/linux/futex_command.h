#ifndef CLEW_COMMON_LINUX_FUTEX_COMMAND_H_
#define CLEW_COMMON_LINUX_FUTEX_COMMAND_H_

#include <linux/futex.h>

#include <cstdint>

namespace clew {

// What futex(2) is asked for by its second argument: FUTEX_WAIT, FUTEX_WAKE,
// ... without the flags beside it.
constexpr int FutexCommand(uint64_t operation) {
  return static_cast<int>(operation) & FUTEX_CMD_MASK;
}

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_FUTEX_COMMAND_H_
