#ifndef CLEW_DAEMON_SPOOL_TAKEOVER_H_
#define CLEW_DAEMON_SPOOL_TAKEOVER_H_

#include <sys/types.h>

#include <string>

#include "common/result.h"

namespace clew::daemon {

// Limits of one bundle that others wrote.
inline constexpr size_t kTakenFilesMax = 4096;
inline constexpr int kTakenDepthMax = 4;

// Makes the tree at `folder`, which another user may have written and may still
// hold open, ours: owner, group and mode (0700, 0600) of every folder and file.
// Afterwards nobody else can add a name to it. Fails with kInvalidArgument, and
// the tree is to be dropped, if it has a link, a device or the like, a file
// with two names, more than kTakenFilesMax files or more than kTakenDepthMax
// nested folders; with kSystem if we are not permitted or the disk fails.
[[nodiscard]] Status TakeOver(const std::string& folder);

struct Owner {
  uid_t user = 0;
  gid_t group = 0;
};

// Replaces every file of a tree that TakeOver made ours by a copy, on stable
// storage and owned by `owner` as the folders are then. Files that others hold
// open or mapped do not belong to the tree afterwards. Blocks of the disk are
// shared where the file system can; holes stay holes. It can be repeated after
// an interruption. Fails as TakeOver does.
[[nodiscard]] Status Renew(const std::string& folder, Owner owner);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SPOOL_TAKEOVER_H_
