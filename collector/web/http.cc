#include "collector/web/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>

#include "common/text/hex.h"
#include "common/text/words.h"

namespace clew::collector::web {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
char ToLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), ToLower);
  return lower;
}
bool IsControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// RFC 9110, "Tokens".
bool IsToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return IsDigit(c) || IsAlpha(c) ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

std::optional<std::string> PercentDecode(std::string_view text,
                                         bool plus_is_space) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
      continue;
    }
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) {
      return std::nullopt;
    }
    const auto high = HexDigitValue(text[i + 1]);
    const auto low = HexDigitValue(text[i + 2]);
    if (!high || !low) {
      return std::nullopt;
    }
    out += static_cast<char>(*high << 4 | *low);
    i += 2;
  }
  if (std::ranges::any_of(out, IsControl)) {
    return std::nullopt;
  }
  return out;
}

bool AddQueryField(std::string_view field, Target& target) {
  const size_t equals = field.find('=');
  const bool has_value = equals != std::string_view::npos;
  auto name = PercentDecode(field.substr(0, equals), true);
  auto value = PercentDecode(has_value ? field.substr(equals + 1) : "", true);
  if (!name || !value || target.query.size() >= kQueryFieldsMax) {
    return false;
  }
  target.query.emplace(std::move(*name), std::move(*value));
  return true;
}

bool AddQuery(std::string_view query, Target& target) {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    if (end > 0 && !AddQueryField(query.substr(0, end), target)) {
      return false;
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return true;
}

ParsedHead Refuse(int status, std::string reason) {
  return {.request = std::nullopt,
          .refusal = {.status = status, .reason = std::move(reason)}};
}

// Takes the text before the next CR LF; nullopt: there is none.
std::optional<std::string_view> TakeLine(std::string_view& text) {
  const size_t end = text.find("\r\n");
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 2);
  return line;
}

struct RequestLine {
  std::string_view method, target, version;
};

std::optional<RequestLine> SplitRequestLine(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return std::nullopt;
  }
  RequestLine parts{line.substr(0, first),
                    line.substr(first + 1, last - first - 1),
                    line.substr(last + 1)};
  const bool broken = parts.target.contains(' ') || !IsToken(parts.method) ||
                      std::ranges::any_of(line, IsControl);
  return broken ? std::nullopt : std::optional(parts);
}

// Takes notice of the headers that matter here; nullopt: fine.
std::optional<Refusal> TakeHeader(std::string_view name_lower,
                                  std::string_view value, Request& request,
                                  bool& has_host) {
  if (name_lower == "host") {
    if (has_host) {
      return Refusal{400, "the request has two Host headers"};
    }
    has_host = true;
    request.host = value;
  } else if (name_lower == "connection") {
    const std::string option = Lower(value);
    if (option.contains("close")) {
      request.keep_alive = false;
    }
  } else if (name_lower == "transfer-encoding" ||
             (name_lower == "content-length" && value != "0")) {
    return Refusal{413, "a request has no body here"};
  }
  return std::nullopt;
}

std::optional<Refusal> TakeHeaders(std::string_view text, Request& request) {
  bool has_host = false;
  for (;;) {
    const auto line = TakeLine(text);
    if (!line) {
      return Refusal{400, "the request's headers do not end"};
    }
    if (line->empty()) {
      break;
    }
    const size_t colon = std::min(line->find(':'), line->size());
    const std::string_view name = line->substr(0, colon);
    if (colon == line->size() || !IsToken(name)) {
      return Refusal{400, "a header of the request is malformed"};
    }
    const std::string_view value = Trimmed(line->substr(colon + 1));
    if (std::ranges::any_of(value,
                            [](char c) { return IsControl(c) && c != '\t'; })) {
      return Refusal{400, "a header of the request has a control character"};
    }
    if (auto refusal = TakeHeader(Lower(name), value, request, has_host)) {
      return refusal;
    }
  }
  if (!has_host) {
    return Refusal{400, "the request has no Host header"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Target> ParseTarget(std::string_view text_untrusted) {
  if (!text_untrusted.starts_with('/')) {
    return std::nullopt;
  }
  const size_t question = text_untrusted.find('?');
  auto path = PercentDecode(text_untrusted.substr(0, question), false);
  if (!path) {
    return std::nullopt;
  }
  Target target{.path = std::move(*path), .query = {}};
  if (question != std::string_view::npos &&
      !AddQuery(text_untrusted.substr(question + 1), target)) {
    return std::nullopt;
  }
  return target;
}

ParsedHead ParseHead(std::string_view head_untrusted) {
  const auto line = TakeLine(head_untrusted);
  const auto parts = line ? SplitRequestLine(*line) : std::nullopt;
  if (!parts) {
    return Refuse(400, "the request line is malformed");
  }
  if (parts->version != "HTTP/1.1" && parts->version != "HTTP/1.0") {
    return Refuse(505, "this server speaks HTTP/1.1");
  }
  if (parts->method != "GET" && parts->method != "HEAD") {
    return Refuse(405, "only GET and HEAD: nothing can be changed here");
  }
  auto target = ParseTarget(parts->target);
  if (!target) {
    return Refuse(400, "the address is malformed");
  }
  Request request{.head_only = parts->method == "HEAD",
                  .target = std::move(*target),
                  .host = {},
                  .keep_alive = parts->version == "HTTP/1.1"};
  if (auto refusal = TakeHeaders(head_untrusted, request)) {
    return Refuse(refusal->status, std::move(refusal->reason));
  }
  return {.request = std::move(request)};
}

namespace {

// Without the port; of "[::1]:80" that is "::1".
std::string_view HostWithoutPort(std::string_view host) {
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(1, end - 1);
  }
  return host.substr(0, host.find(':'));
}

// Whether it can be nothing but an address. Browsers take "127.1" and
// "0x7f000001" for addresses, too, but send them as "127.0.0.1".
bool IsNumeric(std::string_view host, bool in_brackets) {
  return !host.empty() && std::ranges::all_of(host, [&](char c) {
    return IsDigit(c) || c == '.' ||
           (in_brackets && (c == ':' || HexDigitValue(c)));
  });
}

}  // namespace

bool IsExpectedHost(std::string_view host_untrusted,
                    const std::vector<std::string>& names) {
  const std::string host = Lower(HostWithoutPort(host_untrusted));
  return host == "localhost" ||
         IsNumeric(host, host_untrusted.starts_with('[')) ||
         std::ranges::any_of(names, [&](const std::string& name) {
           return Lower(name) == host;
         });
}

namespace {

// IMF-fixdate, RFC 9110, "Date/Time Formats"; English whatever the locale.
std::string HttpDate(int64_t time_s) {
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed",
                                       "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr",
                                         "May", "Jun", "Jul", "Aug",
                                         "Sep", "Oct", "Nov", "Dec"};
  const std::time_t time = time_s;
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays[static_cast<size_t>(parts.tm_wday)], parts.tm_mday,
                     kMonths[static_cast<size_t>(parts.tm_mon)],
                     1900 + parts.tm_year, parts.tm_hour, parts.tm_min,
                     parts.tm_sec);
}

}  // namespace

std::string FormatResponse(const Response& response, bool head_only,
                           bool keep_alive, int64_t now_s) {
  std::string text;
  fmt::format_to(
      std::back_inserter(text),
      "HTTP/1.1 {}\r\nDate: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
      "Cache-Control: {}\r\nConnection: {}\r\n"
      "Content-Security-Policy: default-src 'none'; style-src 'self'; "
      "form-action 'self'; base-uri 'none'; frame-ancestors 'none'\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
      "X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n"
      "Cross-Origin-Opener-Policy: same-origin\r\n{}\r\n",
      ReasonOf(response.status), HttpDate(now_s), response.content_type,
      response.body.size(), response.cache_control,
      keep_alive ? "keep-alive" : "close",
      response.status == 405 ? "Allow: GET, HEAD\r\n" : "");
  if (!head_only) {
    text += response.body;
  }
  return text;
}

std::string_view ReasonOf(int status) {
  struct Row {
    int status;
    std::string_view reason;
  };
  static constexpr std::array kRows = {
      Row{200, "200 OK"},
      Row{400, "400 Bad Request"},
      Row{404, "404 Not Found"},
      Row{405, "405 Method Not Allowed"},
      Row{413, "413 Content Too Large"},
      Row{421, "421 Misdirected Request"},
      Row{431, "431 Request Header Fields Too Large"},
      Row{500, "500 Internal Server Error"},
      Row{503, "503 Service Unavailable"},
      Row{505, "505 HTTP Version Not Supported"},
  };
  const auto* row = std::ranges::find(kRows, status, &Row::status);
  return row == kRows.end() ? ReasonOf(500) : row->reason;
}

std::string PercentEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsDigit(c) || IsAlpha(c) || std::string_view("-._~").contains(c)) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}",
                     static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace clew::collector::web
