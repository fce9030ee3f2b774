#ifndef CLEW_REPLAYER_GDB_COMMANDS_H_
#define CLEW_REPLAYER_GDB_COMMANDS_H_

#include <string>
#include <string_view>

namespace clew::replayer::gdb {

// Returns the text of a file for gdb's option -ix, which prepares gdb for the
// replay that `target remote <remote>` reaches. Program and libraries come from
// the replay, never from this host; the recorded order of threads holds, so
// only the thread that the user steps is stepped. New commands:
//
//   clew-connect       connects, without gdb's messages about files that it
//                      reads from the replay
//   clew-show-failure  how the run failed, and where
//   clew-show-next     what to type next
//
// After `monitor seek`, gdb shows the new position as if it had stopped there:
// thread, frame, libraries and values of watchpoints.
//
// A gdb without Python has these too, but says more than needed, and keeps the
// thread that was selected.
std::string CommandsFor(std::string_view remote);

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_COMMANDS_H_
