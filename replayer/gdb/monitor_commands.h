#ifndef CLEW_REPLAYER_GDB_MONITOR_COMMANDS_H_
#define CLEW_REPLAYER_GDB_MONITOR_COMMANDS_H_

#include <string>
#include <string_view>

#include "replayer/timeline.h"

namespace clew::replayer::gdb {

// What the commands of gdb's `monitor` act on.
struct MonitorState {
  Timeline& timeline;  // borrowed
  bool moved = false;  // by `seek`; gdb was not told
};

// Runs a command with its arguments, "seek 7", and returns the lines to print;
// "" if there is nothing to say. Returns the help, made of all commands, for
// one that does not exist, and so for `help`.
std::string RunMonitorCommand(std::string_view command_untrusted,
                              MonitorState& state);

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_MONITOR_COMMANDS_H_
