#ifndef CLEW_DAEMON_PROTOCOL_H_
#define CLEW_DAEMON_PROTOCOL_H_

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
// Of a process or of a unit, never both.
struct SnapshotRequest {
  int32_t process = 0;  // 0: `unit` says
  std::string unit;
  bool end = false;  // a software recording may be ended for it
  std::string reason;
  bool operator==(const SnapshotRequest&) const = default;
};
// Have bundles that were set aside prepared again.
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

// One line without its newline. kInvalidArgument: no such request; the message
// names the field.
[[nodiscard]] Result<Request> ParseRequest(std::string_view line);
// With the newline. What it gives, ParseRequest takes.
std::string FormatRequest(const Request& request);

// {"ok":true} and {"ok":false,"code":...,"error":...}, with the newline. What
// is no UTF-8 in a message becomes U+FFFD.
std::string OkReply();
// With one field more.
std::string OkReply(std::string_view field, uint64_t value);
std::string OkReply(std::string_view field, const std::string& value);
std::string ErrorReply(const Error& error);

// What a client got: the line if it says ok, else its error.
[[nodiscard]] Result<std::string> ParseReply(std::string line);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_PROTOCOL_H_
