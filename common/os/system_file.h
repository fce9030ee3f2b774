#ifndef CLEW_COMMON_OS_SYSTEM_FILE_H_
#define CLEW_COMMON_OS_SYSTEM_FILE_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdint>

namespace clew {

// Whether only the system may write the file: it is root's, and nobody else is
// allowed to. What is mapped of it for reading (the caches of libc) stays as it
// is.
inline bool IsOfSystem(const struct stat& info) {
  return info.st_uid == 0 && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Whether others may write the file while it is mapped shared. `protection` is
// the mapping's, `open_flags` are those that the file was opened with; O_RDONLY
// where that is not known: what is mapped for reading alone counts as opened
// so.
inline bool OthersMayWrite(uint64_t protection, uint64_t open_flags,
                           const struct stat& info) {
  return (protection & PROT_WRITE) != 0 ||
         (open_flags & O_ACCMODE) != O_RDONLY || !IsOfSystem(info);
}

}  // namespace clew

#endif  // CLEW_COMMON_OS_SYSTEM_FILE_H_
