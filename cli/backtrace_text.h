#ifndef CLEW_CLI_BACKTRACE_TEXT_H_
#define CLEW_CLI_BACKTRACE_TEXT_H_

#include <string>

#include "decoder/backtrace.h"

namespace clew::cli {

// Returns the stacks of all threads, a line for each frame, with an empty line
// between threads, and at the end what is missing for them.
std::string StacksText(const decoder::Backtrace& backtrace);

}  // namespace clew::cli

#endif  // CLEW_CLI_BACKTRACE_TEXT_H_
