#ifndef CLEW_DAEMON_CORE_HANDLER_CORE_WATCH_H_
#define CLEW_DAEMON_CORE_HANDLER_CORE_WATCH_H_

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/core_handler/core_memory.h"

// Part of clew-core-handler. Touching the dying process may mean to wait for a
// stranger, such as the FUSE server of a file that it has mapped. So a child
// does it. C, and part of no library.

enum { kStallMs = 10000 };

// Runs `work` in a child, which is killed once `progress`, in shared memory,
// stands still for `stall_ms`. Returns what `work` does, and kDumpUnreadable
// for a child that was killed.
enum DumpEnd RunWatched(enum DumpEnd (*work)(void*), void* context,
                        const _Atomic uint64_t* progress, int stall_ms);

#endif  // CLEW_DAEMON_CORE_HANDLER_CORE_WATCH_H_
