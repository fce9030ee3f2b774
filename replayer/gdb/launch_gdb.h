#ifndef CLEW_REPLAYER_GDB_LAUNCH_GDB_H_
#define CLEW_REPLAYER_GDB_LAUNCH_GDB_H_

#include <string>
#include <utility>
#include <vector>

#include "common/os/scratch_folder.h"
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
  // Do not say how the run failed and what to type next.
  bool quiet = false;
};

// Files for a gdb that is to look at a replay, in a private folder that is
// removed with this object: one of commands (commands.h), and room for a
// socket.
class GdbFolder {
 public:
  // Makes the folder for a gdb that is to connect to `remote`, or to socket()
  // if that is empty. Fails with kSystem if a file cannot be made.
  [[nodiscard]] static Result<GdbFolder> Make(const std::string& remote = {});
  std::string commands() const { return folder_.path() + "/commands.gdb"; }
  std::string socket() const { return folder_.path() + "/gdb"; }

 private:
  explicit GdbFolder(ScratchFolder folder) : folder_(std::move(folder)) {}
  ScratchFolder folder_;
};

// Starts stock gdb on the replay at its present position, serves it through a
// socket in a private directory, and returns gdb's exit status (128 + n if
// signal n ended it) once gdb is gone. SIGINT is gdb's while it runs. Fails
// with kSystem if its files or socket cannot be made, if gdb cannot be started,
// or if it left before it connected; with kInvalidArgument if the socket's path
// is too long.
[[nodiscard]] Result<int> RunGdb(const LaunchOptions& options,
                                 Timeline& timeline, ImageFiles& files);

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_LAUNCH_GDB_H_
