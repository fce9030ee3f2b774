#ifndef CLEW_COLLECTOR_NOTIFY_WEBHOOK_H_
#define CLEW_COLLECTOR_NOTIFY_WEBHOOK_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace clew::collector {

// Where notifications go, and how.
struct WebhookOptions {
  std::string url;      // http or https
  std::string ca_file;  // PEM; empty: the system's certificate authorities
  std::string program = "/usr/lib/clew/clew-webhook";  // absolute
  // Made for each request and removed again; its parent is there.
  std::string folder;
  double time_limit_s = 30;
  int stop_fd = -1;  // readable: give up; -1: none
};

inline constexpr size_t kWebhookUrlBytesMax = 2048;
inline constexpr size_t kSecretBytesMin = 16;
inline constexpr size_t kSecretBytesMax = 1024;

// kInvalidArgument: not http or https, a user's name in it, or bytes that a url
// cannot have.
[[nodiscard]] Status CheckWebhookUrl(std::string_view url);

// The key of signatures: a file's contents without white space at the end.
// kInvalidArgument: no plain file, one that users beside its owner and group
// may read, or another size than kSecretBytesMin to kSecretBytesMax. kSystem.
[[nodiscard]] Result<std::string> ReadWebhookSecret(const std::string& path);

// What the header Clew-Signature of a body says: "v1=" and HMAC-SHA256 of
// "<time_s>.<body>" in hexadecimal digits.
std::string WebhookSignature(std::string_view secret, int64_t time_s,
                             std::string_view body);

// Posts `body` once, signed, in a confined child process that does not have the
// secret (collector/notify/webhook_main.cc). Redirects are not followed.
// Success: the answer's status is 2xx. Else kSystem, and why: "the receiver
// answered 401"; Error::sys_errno is ECANCELED after `stop_fd`.
[[nodiscard]] Status PostWebhook(const WebhookOptions& options,
                                 std::string_view secret, int64_t time_s,
                                 std::string_view body);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_NOTIFY_WEBHOOK_H_
