#ifndef CLEW_COMMON_LINUX_CALLS_MEMORY_H_
#define CLEW_COMMON_LINUX_CALLS_MEMORY_H_

#include "common/linux/syscall_row.h"

// Rows of the table of system calls: calls on memory.

namespace clew::syscall_rows {

inline constexpr SyscallRow kMemoryCalls[] = {
    CLEW_CALL(mmap, "lliiil", .special = SpecialEffect::kMmap),
    CLEW_CALL(mprotect, "lll"),
    CLEW_CALL(munmap, "ll"),
    CLEW_CALL(brk, "l"),
    CLEW_CALL(mremap, "lllll"),
    CLEW_CALL(msync, "lli"),
    CLEW_CALL(mincore, "lll", .writes = {Pages(2, 1)}),
    CLEW_CALL(madvise, "lli"),
    CLEW_CALL(shmget, "ili"),
    CLEW_CALL(shmat, "ili", .special = SpecialEffect::kSharedMemory),
    CLEW_CALL(shmctl, "iil", .special = SpecialEffect::kRequest),
    CLEW_CALL(shmdt, "l"),
    CLEW_CALL(mlock, "ll"),
    CLEW_CALL(munlock, "ll"),
    CLEW_CALL(mlockall, "i"),
    CLEW_CALL(munlockall, ""),
    CLEW_CALL_UNKNOWN(remap_file_pages, "lllll"),
    CLEW_CALL(mbind, "llllli"),
    CLEW_CALL(set_mempolicy, "ill"),
    CLEW_CALL(get_mempolicy, "lllll",
              .writes = {Fixed(0, sizeof(int)), Bits(1, 2)}),
    CLEW_CALL_FAILING(migrate_pages, "illl"),
    CLEW_CALL_FAILING(move_pages, "illlli"),
    CLEW_CALL(process_vm_readv, "illlll", .writes = {Vector(1, 2)}),
    CLEW_CALL(process_vm_writev, "illlll", .reads = {Vector(1, 2)},
              .special = SpecialEffect::kOtherMemory),
    CLEW_CALL(memfd_create, "li", .reads = {Text(0)}),
    CLEW_CALL_FAILING(userfaultfd, "i"),
    CLEW_CALL(mlock2, "lli"),
    CLEW_CALL(pkey_mprotect, "llli"),
    CLEW_CALL(pkey_alloc, "ll"),
    CLEW_CALL(pkey_free, "i"),
    CLEW_CALL_FAILING(process_madvise, "illii"),
    CLEW_CALL_FAILING(memfd_secret, "i"),
    CLEW_CALL_FAILING(process_mrelease, "ii"),
    CLEW_CALL_UNKNOWN(set_mempolicy_home_node, "llll"),
};

}  // namespace clew::syscall_rows

#endif  // CLEW_COMMON_LINUX_CALLS_MEMORY_H_
