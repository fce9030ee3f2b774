#ifndef CLEW_COMMON_RESULT_H_
#define CLEW_COMMON_RESULT_H_

#include <fmt/format.h>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace clew {

// Why an operation on input or environment failed. Our own bugs are
// CLEW_CHECKs; holes in a trace are data (common/stream.h, Gap).
enum class ErrorCode : uint8_t {
  kInvalidArgument,  // the request makes no sense
  kCorruptInput,     // bytes from disk, network or PMU break their format
  kUnsupported,      // this CPU, kernel or bundle version lacks what is needed
  kSystem,           // a system call failed; Error::sys_errno says how
  kLimit,            // a stated limit was reached before an answer
};

struct Error {
  ErrorCode code;
  std::string message;  // one line, lower case, no final period
  int sys_errno = 0;    // only for kSystem
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// Exit codes by cause; `clew help` lists them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFinding = 1;      // failure found, divergence
inline constexpr int kExitUsage = 2;        // kInvalidArgument
inline constexpr int kExitEnvironment = 3;  // kSystem, kUnsupported
inline constexpr int kExitCorrupt = 4;      // kCorruptInput
inline constexpr int kExitLimit = 5;        // kLimit
inline constexpr int kExitBug = 70;         // a CLEW_CHECK failed

int ExitCodeOf(ErrorCode code);

// fmt-style construction of each kind.
template <class... Args>
[[nodiscard]] std::unexpected<Error> InvalidArgument(
    fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(
      Error{ErrorCode::kInvalidArgument,
            fmt::format(format, std::forward<Args>(args)...)});
}
template <class... Args>
[[nodiscard]] std::unexpected<Error> CorruptInput(
    fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(
      Error{ErrorCode::kCorruptInput,
            fmt::format(format, std::forward<Args>(args)...)});
}
template <class... Args>
[[nodiscard]] std::unexpected<Error> Unsupported(
    fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(
      Error{ErrorCode::kUnsupported,
            fmt::format(format, std::forward<Args>(args)...)});
}
template <class... Args>
[[nodiscard]] std::unexpected<Error> LimitReached(
    fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{
      ErrorCode::kLimit, fmt::format(format, std::forward<Args>(args)...)});
}
// Appends ": " and the text of `sys_errno` to `what`.
[[nodiscard]] std::unexpected<Error> SystemError(int sys_errno,
                                                 std::string_view what);

}  // namespace clew

#define CLEW_RETURN_IF_ERROR(...)                             \
  do {                                                        \
    if (auto clew_status = (__VA_ARGS__); !clew_status) {     \
      return std::unexpected(std::move(clew_status).error()); \
    }                                                         \
  } while (false)

// CLEW_ASSIGN_OR_RETURN(n, Parse(text)); makes n a reference to the value.
#define CLEW_ASSIGN_OR_RETURN(name, ...)                      \
  auto name##_result = (__VA_ARGS__);                         \
  if (!name##_result) {                                       \
    return std::unexpected(std::move(name##_result).error()); \
  }                                                           \
  auto& name = *name##_result

#endif  // CLEW_COMMON_RESULT_H_
