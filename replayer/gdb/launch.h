#ifndef CLEW_REPLAYER_GDB_LAUNCH_H_
#define CLEW_REPLAYER_GDB_LAUNCH_H_

#include <string>
#include <vector>

#include "common/result.h"
#include "replayer/image_files.h"
#include "replayer/timeline.h"

namespace clew::replayer::gdb {

struct LaunchOptions {
  std::string gdb = "gdb";  // looked up in PATH
  // Commands for gdb once it is connected.
  std::vector<std::string> commands;
  // Run the commands and leave, without the user's init files and without
  // reading standard input; otherwise go on interactively.
  bool batch = false;
};

// What is passed to gdb to get it connected to the socket at `socket_path`.
// Program and libraries come from the replay, never from this host; the
// recorded order of threads holds, so only the thread that the user steps is
// stepped.
std::vector<std::string> GdbArguments(const LaunchOptions& options,
                                      const std::string& socket_path);

// Starts stock gdb on the replay at its present position, serves it through a
// socket in a private directory, and returns gdb's exit status (128 + n if
// signal n ended it) once gdb is gone. SIGINT is gdb's while it runs.
// kSystem: gdb cannot be started, or left before it connected.
[[nodiscard]] Result<int> RunGdb(const LaunchOptions& options,
                                 Timeline& timeline, ImageFiles& files);

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_LAUNCH_H_
