#ifndef CLEW_COMMON_LINUX_REQUESTS_KEYCTL_H_
#define CLEW_COMMON_LINUX_REQUESTS_KEYCTL_H_

#include <linux/keyctl.h>

#include "common/linux/request_row.h"

// Rows of the table of requests: operations of keyctl. Sources: linux/keyctl.h,
// and for the widths security/keys/keyctl.c. KEYCTL_PKEY_ENCRYPT, _DECRYPT and
// _SIGN have none: how much they may write is in memory.

namespace clew::request_rows {

// What is written is at argument `behind`, and its size behind it.
#define CLEW_KEY_READ(request, widths, at)                                    \
  CLEW_REQUEST(request, widths, .bytes = 1, .extent = RequestExtent::kResult, \
               .behind = at)

inline constexpr uint16_t kKeyQuery = sizeof(keyctl_pkey_query);

inline constexpr RequestRow kKeyctlRequests[] = {
    CLEW_REQUEST(KEYCTL_GET_KEYRING_ID, "iii"),
    CLEW_REQUEST(KEYCTL_JOIN_SESSION_KEYRING, "il"),
    CLEW_REQUEST(KEYCTL_UPDATE, "iill"),
    CLEW_REQUEST(KEYCTL_REVOKE, "ii"),
    CLEW_REQUEST(KEYCTL_CHOWN, "iiii"),
    CLEW_REQUEST(KEYCTL_SETPERM, "iii"),
    CLEW_KEY_READ(KEYCTL_DESCRIBE, "iili", 2),
    CLEW_REQUEST(KEYCTL_CLEAR, "ii"),
    CLEW_REQUEST(KEYCTL_LINK, "iii"),
    CLEW_REQUEST(KEYCTL_UNLINK, "iii"),
    CLEW_REQUEST(KEYCTL_SEARCH, "iilli"),
    CLEW_KEY_READ(KEYCTL_READ, "iill", 2),
    CLEW_REQUEST(KEYCTL_INSTANTIATE, "iilli"),
    CLEW_REQUEST(KEYCTL_NEGATE, "iiii"),
    CLEW_REQUEST(KEYCTL_SET_REQKEY_KEYRING, "ii"),
    CLEW_REQUEST(KEYCTL_SET_TIMEOUT, "iii"),
    CLEW_REQUEST(KEYCTL_ASSUME_AUTHORITY, "ii"),
    CLEW_KEY_READ(KEYCTL_GET_SECURITY, "iill", 2),
    CLEW_REQUEST(KEYCTL_SESSION_TO_PARENT, "i"),
    CLEW_REQUEST(KEYCTL_REJECT, "iiiii"),
    CLEW_REQUEST(KEYCTL_INSTANTIATE_IOV, "iilii"),
    CLEW_REQUEST(KEYCTL_INVALIDATE, "ii"),
    CLEW_REQUEST(KEYCTL_GET_PERSISTENT, "iii"),
    CLEW_KEY_READ(KEYCTL_DH_COMPUTE, "illll", 2),
    CLEW_REQUEST(KEYCTL_PKEY_QUERY, "iilll", .bytes = kKeyQuery, .behind = 4),
    CLEW_REQUEST(KEYCTL_PKEY_VERIFY, "illll"),
    CLEW_REQUEST(KEYCTL_RESTRICT_KEYRING, "iill"),
    CLEW_REQUEST(KEYCTL_MOVE, "iiiii"),
    CLEW_KEY_READ(KEYCTL_CAPABILITIES, "ill", 1),
    CLEW_REQUEST(KEYCTL_WATCH_KEY, "iiii"),
};

#undef CLEW_KEY_READ

}  // namespace clew::request_rows

#endif  // CLEW_COMMON_LINUX_REQUESTS_KEYCTL_H_
