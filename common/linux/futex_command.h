#ifndef CLEW_COMMON_LINUX_FUTEX_COMMAND_H_
#define CLEW_COMMON_LINUX_FUTEX_COMMAND_H_

#include <linux/futex.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/linux/syscall_result.h"

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

// Moves sleepers from one word to another, after it woke some of them.
constexpr bool IsFutexRequeue(uint64_t operation) {
  const int command = FutexCommand(operation);
  return command == FUTEX_REQUEUE || command == FUTEX_CMP_REQUEUE;
}

// Takes a lock with priority inheritance, and may wait for it.
constexpr bool IsFutexLock(uint64_t operation) {
  const int command = FutexCommand(operation);
  return command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2;
}

// Takes such a lock, tries to, or gives it up.
constexpr bool IsOfInheritingLock(uint64_t operation) {
  const int command = FutexCommand(operation);
  return IsFutexLock(operation) || command == FUTEX_TRYLOCK_PI ||
         command == FUTEX_UNLOCK_PI;
}

// Moves waits to such a lock.
constexpr bool IsFutexLockRequeue(uint64_t operation) {
  const int command = FutexCommand(operation);
  return command == FUTEX_WAIT_REQUEUE_PI || command == FUTEX_CMP_REQUEUE_PI;
}

// Whether a wait or FUTEX_CMP_REQUEUE that returned `result` came to comparing
// the word with the value that it was given. QEMU interrupts a call that the
// kernel has not seen yet, too.
constexpr bool ComparedFutexWord(std::optional<int64_t> result) {
  return result != kRestartSys && result != -EINVAL && result != -EFAULT;
}

// "FUTEX_LOCK_PI"; nullptr for a number that Linux 6.1 does not have.
constexpr const char* FutexCommandName(uint64_t operation) {
  constexpr std::array kNames = {
      "FUTEX_WAIT",           "FUTEX_WAKE",        "FUTEX_FD",
      "FUTEX_REQUEUE",        "FUTEX_CMP_REQUEUE", "FUTEX_WAKE_OP",
      "FUTEX_LOCK_PI",        "FUTEX_UNLOCK_PI",   "FUTEX_TRYLOCK_PI",
      "FUTEX_WAIT_BITSET",    "FUTEX_WAKE_BITSET", "FUTEX_WAIT_REQUEUE_PI",
      "FUTEX_CMP_REQUEUE_PI", "FUTEX_LOCK_PI2"};
  const auto command = static_cast<size_t>(FutexCommand(operation));
  return command < kNames.size() ? kNames[command] : nullptr;
}

// What FUTEX_WAKE_OP does to a word, as its last argument says: the value that
// the word has afterwards, and whether its sleepers are woken.
//
// Source: linux/kernel/futex/syscalls.c, futex_atomic_op_inuser.
struct FutexOperation {
  uint32_t value = 0;
  bool wakes = false;
};
std::optional<FutexOperation> OperateOnFutex(uint32_t encoded, uint32_t word);

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_FUTEX_COMMAND_H_
