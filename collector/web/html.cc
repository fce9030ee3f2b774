#include "collector/web/html.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "common/check.h"
#include "common/text/utf8.h"

namespace clew::collector::web {
namespace {

// Controls, marks and overrides of direction, line separators, characters
// without width, and those that are none.
bool IsUnseen(char32_t code) {
  return (code < 0x20 && code != '\n' && code != '\t') ||
         (code >= 0x7f && code <= 0x9f) || code == 0xad || code == 0x61c ||
         (code >= 0x200b && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
         (code >= 0xfff9 && code <= 0xfffb) || (code & 0xfffe) == 0xfffe ||
         (code >= 0xfdd0 && code <= 0xfdef) || (code >> 16) == 0xe;
}

void AppendEscaped(char32_t code, std::string_view bytes, std::string& out) {
  switch (code) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      if (IsUnseen(code)) {
        fmt::format_to(std::back_inserter(out), "\\u{{{:x}}}",
                       static_cast<uint32_t>(code));
      } else {
        out += bytes;
      }
  }
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  while (at < text.size() && at < kTextBytesMax) {
    const Utf8Character decoded = FirstCharacter(text.substr(at));
    if (decoded.bytes == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}",
                     static_cast<unsigned char>(text[at]));
      ++at;
      continue;
    }
    AppendEscaped(decoded.code, text.substr(at, decoded.bytes), out);
    at += decoded.bytes;
  }
  if (at < text.size()) {
    fmt::format_to(std::back_inserter(out), "… ({} more bytes)",
                   text.size() - at);
  }
  return out;
}

void HtmlWriter::Open(const char* name, Attributes attributes) {
  Void(name, attributes);
  ++depth_;
}

void HtmlWriter::Close(const char* name) {
  CLEW_CHECK(depth_ > 0, "{} is closed and was not opened", name);
  --depth_;
  fmt::format_to(std::back_inserter(html_), "</{}>", name);
}

void HtmlWriter::Void(const char* name, Attributes attributes) {
  fmt::format_to(std::back_inserter(html_), "<{}", name);
  for (const Attribute& attribute : attributes) {
    fmt::format_to(std::back_inserter(html_), " {}=\"{}\"", attribute.name,
                   EscapeHtml(attribute.value));
  }
  html_ += '>';
}

void HtmlWriter::Element(const char* name, Attributes attributes,
                         std::string_view text) {
  In(name, attributes, [&] { Text(text); });
}

void HtmlWriter::Text(std::string_view text) { html_ += EscapeHtml(text); }

std::string HtmlWriter::Take() {
  CLEW_CHECK(depth_ == 0, "{} elements are still open", depth_);
  return std::move(html_);
}

}  // namespace clew::collector::web
