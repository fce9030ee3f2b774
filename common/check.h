#ifndef CLEW_COMMON_CHECK_H_
#define CLEW_COMMON_CHECK_H_

#include <fmt/format.h>

#include <source_location>
#include <string>

namespace clew {

// Prints condition, message, place and stack to stderr and ends the process
// with kExitBug.
[[noreturn]] void CheckFailed(
    const char* condition, const std::string& message,
    std::source_location where = std::source_location::current());

}  // namespace clew

// Checks an invariant of this program, in release builds too. Takes a message:
// CLEW_CHECK(begin <= end, "slice {} ends before it begins", id);
#define CLEW_CHECK(condition, ...) \
  ((condition) ? void()            \
               : ::clew::CheckFailed(#condition, fmt::format(__VA_ARGS__)))

#endif  // CLEW_COMMON_CHECK_H_
