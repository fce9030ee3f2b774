#ifndef CLEW_COMMON_OS_SYSTEM_FILE_H_
#define CLEW_COMMON_OS_SYSTEM_FILE_H_

#include <sys/stat.h>

namespace clew {

// Whether only the system may write the file: it is root's, and nobody else is
// allowed to. What is mapped of it for reading (the caches of libc) stays as it
// is.
inline bool IsOfSystem(const struct stat& info) {
  return info.st_uid == 0 && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace clew

#endif  // CLEW_COMMON_OS_SYSTEM_FILE_H_
