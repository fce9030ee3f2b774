#include "collector/catalogue/text.h"

#include "common/check.h"
#include "common/text/utf8.h"

namespace clew::collector {
namespace {

constexpr size_t kPatternBytesMax = 255;

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";     // U+2026

// C0, DEL and C1 (U+0080 to U+009F), of which a terminal may act on any.
bool IsControl(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

// Takes one character, or one byte that belongs to none, off `text`.
std::string_view TakeCharacter(std::string_view& text, bool one_line) {
  const Utf8Character first = FirstCharacter(text);
  const auto character = text.substr(0, first.bytes == 0 ? 1 : first.bytes);
  text.remove_prefix(character.size());
  const bool bad = first.bytes == 0 || (one_line && IsControl(first.code));
  return bad ? kReplacement : character;
}

}  // namespace

std::string CleanUtf8(std::string_view text_untrusted) {
  std::string clean;
  clean.reserve(text_untrusted.size());
  while (!text_untrusted.empty()) {
    clean += TakeCharacter(text_untrusted, /*one_line=*/false);
  }
  return clean;
}

std::string CleanLine(std::string_view text_untrusted, size_t bytes_max) {
  CLEW_CHECK(bytes_max >= kEllipsis.size(), "no room for {}", bytes_max);
  std::string clean;
  size_t cut = 0;  // where the ellipsis still fits
  while (!text_untrusted.empty()) {
    clean += TakeCharacter(text_untrusted, /*one_line=*/true);
    if (clean.size() > bytes_max) {
      return clean.substr(0, cut).append(kEllipsis);
    }
    if (clean.size() + kEllipsis.size() <= bytes_max) {
      cut = clean.size();
    }
  }
  return clean;
}

std::string LikePattern(std::string_view text_untrusted) {
  std::string pattern = "%";
  for (const char c : CleanLine(text_untrusted, kPatternBytesMax)) {
    if (c == '%' || c == '_' || c == '\\') {
      pattern += '\\';
    }
    pattern += c;
  }
  return pattern + "%";
}

}  // namespace clew::collector
