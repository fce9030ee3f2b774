#ifndef CLEW_DAEMON_CORE_DEVICES_H_
#define CLEW_DAEMON_CORE_DEVICES_H_

#include <stdbool.h>
#include <stdint.h>

// Of clew-core-handler: the device of a mapped file. C, and part of no library.

// Whether pages of its files come without a stranger's help. Behind FUSE there
// is a process of his, which may never answer, and then whoever waits cannot be
// killed. A file system mounted in a user's own namespace is not among our
// mounts; he may be its server, too, so it is none.
bool IsAnsweredByKernel(uint64_t device);

#endif  // CLEW_DAEMON_CORE_DEVICES_H_
