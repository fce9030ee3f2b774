#ifndef CLEW_COMMON_TEXT_SHELL_QUOTE_H_
#define CLEW_COMMON_TEXT_SHELL_QUOTE_H_

#include <span>
#include <string>
#include <string_view>

namespace clew {

// A command line that a POSIX shell splits into exactly `arguments`; words that
// need no quotes stay as they are.
std::string ShellQuote(std::span<const std::string> arguments);
std::string ShellQuote(std::string_view argument);

}  // namespace clew

#endif  // CLEW_COMMON_TEXT_SHELL_QUOTE_H_
