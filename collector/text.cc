#include "collector/text.h"

#include <array>
#include <cstdint>

#include "common/check.h"

namespace clew::collector {
namespace {

constexpr size_t kPatternBytesMax = 255;

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";     // U+2026

uint8_t ByteAt(std::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

// The bounds of the second byte that are narrower than 80..BF.
//
// Source: The Unicode Standard, "Well-Formed UTF-8 Byte Sequences".
struct Lead {
  uint8_t first;
  uint8_t last;
  size_t size;
  uint8_t second_min;
  uint8_t second_max;
};
constexpr std::array<Lead, 9> kLeads = {{
    {0x00, 0x7f, 1, 0, 0},
    {0xc2, 0xdf, 2, 0x80, 0xbf},
    {0xe0, 0xe0, 3, 0xa0, 0xbf},
    {0xe1, 0xec, 3, 0x80, 0xbf},
    {0xed, 0xed, 3, 0x80, 0x9f},
    {0xee, 0xef, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x90, 0xbf},
    {0xf1, 0xf3, 4, 0x80, 0xbf},
    {0xf4, 0xf4, 4, 0x80, 0x8f},
}};

bool Fits(std::string_view text, const Lead& lead) {
  if (text.size() < lead.size) {
    return false;
  }
  for (size_t i = 1; i < lead.size; ++i) {
    const uint8_t byte = ByteAt(text, i);
    const uint8_t low = i == 1 ? lead.second_min : 0x80;
    const uint8_t high = i == 1 ? lead.second_max : 0xbf;
    if (byte < low || byte > high) {
      return false;
    }
  }
  return true;
}

// Bytes of the character that `text` begins with; 0: none.
size_t CharacterSize(std::string_view text) {
  const uint8_t first = ByteAt(text, 0);
  for (const Lead& lead : kLeads) {
    if (first >= lead.first && first <= lead.last) {
      return Fits(text, lead) ? lead.size : 0;
    }
  }
  return 0;
}

// C0, DEL and C1 (U+0080 to U+009F), of which a terminal may act on any.
bool IsControl(std::string_view character) {
  const uint8_t first = ByteAt(character, 0);
  return first < 0x20 || first == 0x7f ||
         (first == 0xc2 && ByteAt(character, 1) < 0xa0);
}

// Takes one character, or one byte that belongs to none, off `text`.
std::string_view TakeCharacter(std::string_view& text, bool one_line) {
  const size_t size = CharacterSize(text);
  std::string_view character = text.substr(0, size == 0 ? 1 : size);
  text.remove_prefix(character.size());
  const bool bad = size == 0 || (one_line && IsControl(character));
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
