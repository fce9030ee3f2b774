#ifndef CLEW_DAEMON_CORE_HANDLER_CORE_DEVICES_H_
#define CLEW_DAEMON_CORE_HANDLER_CORE_DEVICES_H_

#include <stdbool.h>
#include <stdint.h>

// Part of clew-core-handler: the device of a mapped file. C, and part of no
// library.

// Returns whether the kernel alone supplies the pages of files on `device`.
// Behind FUSE there is another process, which may never answer, and then
// whoever waits cannot be killed. Returns false for a file system that is
// mounted in a user's own namespace and so is not among our mounts: the user
// may be its server.
bool IsAnsweredByKernel(uint64_t device);

#endif  // CLEW_DAEMON_CORE_HANDLER_CORE_DEVICES_H_
