#ifndef CLEW_CLI_REPEAT_COMMAND_H_
#define CLEW_CLI_REPEAT_COMMAND_H_

#include <string>

namespace clew::cli {

// The line for a POSIX shell, in any folder and environment, that records the
// run of `bundle` once more, into repeat.clew in that folder.
std::string RepeatCommand(const std::string& bundle);

}  // namespace clew::cli

#endif  // CLEW_CLI_REPEAT_COMMAND_H_
