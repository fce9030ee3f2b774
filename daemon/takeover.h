#ifndef CLEW_DAEMON_TAKEOVER_H_
#define CLEW_DAEMON_TAKEOVER_H_

#include <string>

#include "common/result.h"

namespace clew::daemon {

// Of one bundle that others wrote.
inline constexpr size_t kTakenFilesMax = 4096;
inline constexpr int kTakenDepthMax = 4;

// Makes the tree at `folder`, which another user may have written and may still
// hold open, ours: owner, group and mode (0700, 0600) of every folder and file.
// Afterwards nobody else can add a name to it.
//
// kInvalidArgument, and the tree is to be dropped: a link, a device or the
// like, a file with two names, more than kTakenFilesMax files or kTakenDepthMax
// folders in one another. kSystem: we may not, or the disk failed.
[[nodiscard]] Status TakeOver(const std::string& folder);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_TAKEOVER_H_
