#ifndef CLEW_COMMON_LINUX_SHARED_MEMORY_H_
#define CLEW_COMMON_LINUX_SHARED_MEMORY_H_

#include <cstdint>

#include "common/digest.h"

namespace clew {

// The kernel's device of memory without a file of its own: memfd_create(2),
// what is mapped shared and anonymous, segments of System V, whose inode is
// their number. Source: linux mm/shmem.c (shmem_init), ipc/shm.c (newseg).
inline constexpr uint64_t kMemoryDevice = 1;

// Returns the number that a recording has for a file or a segment that is
// mapped shared (SyscallInput::shared_memory). `device` is as in stat::st_dev.
constexpr uint64_t SharedMemoryNumber(uint64_t device, uint64_t inode) {
  return MixBits(inode ^ MixBits(device)) | 1;
}

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_SHARED_MEMORY_H_
