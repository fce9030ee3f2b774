#ifndef CLEW_DAEMON_SOURCE_INSPECT_H_
#define CLEW_DAEMON_SOURCE_INSPECT_H_

#include <cstddef>
#include <span>

#include "common/result.h"

namespace clew::daemon {

// `clewd inspect`, the child's side of an Inspector: answers requests of
// proto/inspect.proto on standard input, a socket, until that ends. Descriptor
// kFirstAnswerFd is closed when the first answer is there: what is to be held
// of a process is held then.
[[nodiscard]] Status Inspect();

inline constexpr int kFirstAnswerFd = 3;
// Size of a message, at most.
inline constexpr size_t kInspectBytesMax = size_t{16} << 20;

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SOURCE_INSPECT_H_
