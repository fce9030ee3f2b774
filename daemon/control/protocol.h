#ifndef CLEW_DAEMON_CONTROL_PROTOCOL_H_
#define CLEW_DAEMON_CONTROL_PROTOCOL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/result.h"

namespace clew::daemon {

// The control protocol: one JSON object a line; docs/design/daemon.md. Texts
// are UTF-8 without control characters, at most kTextBytesMax.
inline constexpr size_t kRequestBytesMax = 4096;  // with the newline
inline constexpr size_t kReplyBytesMax = size_t{256} << 10;
inline constexpr size_t kTextBytesMax = 512;

struct StatusRequest {
  bool operator==(const StatusRequest&) const = default;
};
struct UnitsRequest {
  bool operator==(const UnitsRequest&) const = default;
};
struct ReloadRequest {
  bool operator==(const ReloadRequest&) const = default;
};
// Asks for a snapshot of a process or of a unit, never both.
struct SnapshotRequest {
  int32_t process = 0;  // 0: `unit` says
  std::string unit;
  bool end = false;  // a software recording may be ended for it
  std::string reason;
  bool operator==(const SnapshotRequest&) const = default;
};
// Asks to prepare bundles again that were set aside.
struct RetryRequest {
  std::string bundle;  // empty: all of stuck/
  bool operator==(const RetryRequest&) const = default;
};
// The kernel is dumping a process: what core(5) tells by %P %I %s %t %e.
struct CoreRequest {
  int32_t process = 0;
  int32_t thread = 0;
  int32_t signal = 0;
  int64_t time_s = 0;
  std::string comm;
  bool operator==(const CoreRequest&) const = default;
};
// Everything was copied, or the copy ended before (`whole` is false).
struct CoreDoneRequest {
  uint64_t bytes = 0;
  bool whole = false;
  bool operator==(const CoreDoneRequest&) const = default;
};
using Request =
    std::variant<StatusRequest, UnitsRequest, ReloadRequest, SnapshotRequest,
                 RetryRequest, CoreRequest, CoreDoneRequest>;

// Reads one line, given without its newline. Fails with kInvalidArgument if it
// is not a request; the message names the field.
[[nodiscard]] Result<Request> ParseRequest(std::string_view line);
// Returns the line with its newline; ParseRequest reads it back as the same
// request.
std::string FormatRequest(const Request& request);

// Return {"ok":true} and {"ok":false,"code":...,"error":...}, with the newline.
// Bytes of a message that are not UTF-8 become U+FFFD.
std::string OkReply();
// With one field more.
std::string OkReply(std::string_view field, uint64_t value);
std::string OkReply(std::string_view field, const std::string& value);
std::string ErrorReply(const Error& error);

// Returns the line that a client got if it says ok, and fails with the error
// that it names if not.
[[nodiscard]] Result<std::string> ParseReply(std::string line);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_CONTROL_PROTOCOL_H_
