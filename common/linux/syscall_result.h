#ifndef CLEW_COMMON_LINUX_SYSCALL_RESULT_H_
#define CLEW_COMMON_LINUX_SYSCALL_RESULT_H_

#include <cstdint>

namespace clew {

// Whether what a system call returned is an error number, negated. An address
// that mmap returned may be negative, too.
//
// Source: linux/include/linux/err.h, MAX_ERRNO and IS_ERR_VALUE.
constexpr bool IsErrorResult(int64_t result) {
  constexpr int64_t kErrnoMax = 4095;
  return result < 0 && result >= -kErrnoMax;
}

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_SYSCALL_RESULT_H_
