#ifndef CLEW_COLLECTOR_WEB_HTTP_H_
#define CLEW_COLLECTOR_WEB_HTTP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clew::collector::web {

// The part of HTTP/1.1 (RFC 9112) that a server of pages needs: GET and HEAD
// without bodies. Anything doubtful is refused rather than guessed at, so that
// a proxy in front and this server never see two different requests.

// A request's target: "/groups?q=a+b" is path "/groups", query {q: "a b"}.
struct Target {
  std::string path;                          // percent-decoded
  std::map<std::string, std::string> query;  // decoded; the first of a name
};
inline constexpr size_t kQueryFieldsMax = 32;

// nullopt: does not begin with '/', has a broken or control-character escape,
// or more than kQueryFieldsMax fields. "." and ".." have no meaning: a path is
// compared, and never opens a file.
std::optional<Target> ParseTarget(std::string_view text_untrusted);

struct Request {
  bool head_only = false;  // HEAD: the answer without its body
  Target target;
  std::string host;        // of the Host header, as it came
  bool keep_alive = true;  // the client may send another
};

// Why a request head is refused.
struct Refusal {
  int status;
  std::string reason;
};

struct ParsedHead {
  std::optional<Request> request;
  Refusal refusal{};  // where there is no request
};

// `head_untrusted` ends with the empty line.
ParsedHead ParseHead(std::string_view head_untrusted);

// Whether somebody who asks for `host` ("name", "name:port", "[::1]:80") may
// see the pages: localhost, a numeric address, or one of `names`.
bool IsExpectedHost(std::string_view host_untrusted,
                    const std::vector<std::string>& names);

struct Response {
  int status = 200;
  std::string content_type;
  std::string body;
  std::string cache_control = "no-cache, private";
};

// Status line, headers with those that confine what a browser does with the
// page, and the body unless `head_only`.
// `now_s`: seconds since 1970, for the Date header.
std::string FormatResponse(const Response& response, bool head_only,
                           bool keep_alive, int64_t now_s);

// "404 Not Found".
std::string_view ReasonOf(int status);

// One component of a path or a value in a query, percent-encoded.
std::string PercentEncode(std::string_view text);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_HTTP_H_
