#ifndef CLEW_COMMON_LINUX_REQUESTS_FCNTL_H_
#define CLEW_COMMON_LINUX_REQUESTS_FCNTL_H_

#include <fcntl.h>
#include <sys/types.h>

#include "common/linux/request_row.h"

// Rows of the table of requests: commands of fcntl. Sources: linux/fcntl.h,
// asm-generic/fcntl.h.

namespace clew::request_rows {

// The structure: a function of <sys/file.h> has its name.
inline constexpr uint16_t kFlock = sizeof(struct flock);
inline constexpr uint16_t kOwner = sizeof(f_owner_ex);
inline constexpr uint16_t kTwoUids = 2 * sizeof(uid_t);
inline constexpr uint16_t kWriteHint = sizeof(uint64_t);

inline constexpr RequestRow kFcntlRequests[] = {
    CLEW_REQUEST(F_DUPFD, "iii"),
    CLEW_REQUEST(F_GETFD, "ii"),
    CLEW_REQUEST(F_SETFD, "iii"),
    CLEW_REQUEST(F_GETFL, "ii"),
    CLEW_REQUEST(F_SETFL, "iii"),
    CLEW_REQUEST(F_GETLK, "iil", .bytes = kFlock),
    CLEW_REQUEST(F_SETLK, "iil"),
    CLEW_REQUEST(F_SETLKW, "iil"),
    CLEW_REQUEST(F_SETOWN, "iii"),
    CLEW_REQUEST(F_GETOWN, "ii"),
    CLEW_REQUEST(F_SETSIG, "iii"),
    CLEW_REQUEST(F_GETSIG, "ii"),
    CLEW_REQUEST(F_SETOWN_EX, "iil"),
    CLEW_REQUEST(F_GETOWN_EX, "iil", .bytes = kOwner),
    // <fcntl.h> has no name for it.
    {.name = "F_GETOWNER_UIDS",
     .number = 17,
     .arguments = "iil",
     .bytes = kTwoUids},
    CLEW_REQUEST(F_OFD_GETLK, "iil", .bytes = kFlock),
    CLEW_REQUEST(F_OFD_SETLK, "iil"),
    CLEW_REQUEST(F_OFD_SETLKW, "iil"),
    CLEW_REQUEST(F_SETLEASE, "iii"),
    CLEW_REQUEST(F_GETLEASE, "ii"),
    CLEW_REQUEST(F_NOTIFY, "iii"),
    CLEW_REQUEST(F_DUPFD_CLOEXEC, "iii"),
    CLEW_REQUEST(F_SETPIPE_SZ, "iii"),
    CLEW_REQUEST(F_GETPIPE_SZ, "ii"),
    CLEW_REQUEST(F_ADD_SEALS, "iii"),
    CLEW_REQUEST(F_GET_SEALS, "ii"),
    CLEW_REQUEST(F_GET_RW_HINT, "iil", .bytes = kWriteHint),
    CLEW_REQUEST(F_SET_RW_HINT, "iil"),
    // Linux 6.10 and 6.12, linux/fcntl.h; Debian 12's headers are older.
    {.name = "F_DUPFD_QUERY", .number = 1027, .arguments = "iii"},
    {.name = "F_CREATED_QUERY", .number = 1028, .arguments = "ii"},
};

}  // namespace clew::request_rows

#endif  // CLEW_COMMON_LINUX_REQUESTS_FCNTL_H_
