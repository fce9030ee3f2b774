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

// Sleeps while a word has a value, until it is woken or a time is over. Locks
// with priority inheritance are none.
constexpr bool IsFutexWait(uint64_t operation) {
  const int command = FutexCommand(operation);
  return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
}
// Wakes who sleeps so on one word, and does nothing else.
constexpr bool IsFutexWake(uint64_t operation) {
  const int command = FutexCommand(operation);
  return command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET;
}

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_FUTEX_COMMAND_H_
