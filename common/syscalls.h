#ifndef CLEW_COMMON_SYSCALLS_H_
#define CLEW_COMMON_SYSCALLS_H_

#include <cstdint>
#include <string>

namespace clew {

// One x86-64 system call of Linux 6.1.
//
// Source: arch/x86/entry/syscalls/syscall_64.tbl for numbers and names,
// include/linux/syscalls.h for the signatures.
struct SyscallPrototype {
  uint16_t number = 0;
  const char* name = nullptr;
  // One letter for each argument, by how many of its register's bits the kernel
  // looks at: l 64 (pointer, long, size_t), i 32 (int, descriptor, id),
  // h 16 (umode_t), b 8 (exit status), - none. Empty also where Linux 6.1 has
  // the number but no longer the call.
  const char* arguments = nullptr;
};

// nullptr for a number that Linux 6.1 does not have.
const SyscallPrototype* FindPrototype(uint64_t number);

// "futex", "read"; "syscall 999" for a number that Linux 6.1 does not have.
std::string SyscallName(uint64_t number);

}  // namespace clew

#endif  // CLEW_COMMON_SYSCALLS_H_
