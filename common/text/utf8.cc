#include "common/text/utf8.h"

#include <array>

namespace clew {
namespace {

// How many bytes a character has that begins with `lead`; 0: none begins so.
size_t BytesAfterLead(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xc2 && lead <= 0xdf) {
    return 2;
  }
  if (lead >= 0xe0 && lead <= 0xef) {
    return 3;
  }
  return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

// By how many bytes it takes: the least code that may be written so.
constexpr std::array<char32_t, 5> kLeastCode = {0, 0, 0x80, 0x800, 0x10000};

bool IsCharacter(char32_t code, size_t bytes) {
  return code >= kLeastCode[bytes] && code <= 0x10ffff &&
         !(code >= 0xd800 && code <= 0xdfff);
}

}  // namespace

Utf8Character FirstCharacter(std::string_view text) {
  if (text.empty()) {
    return {};
  }
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t bytes = BytesAfterLead(lead);
  if (bytes == 0 || bytes > text.size()) {
    return {};
  }
  char32_t code = bytes == 1 ? lead : lead & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) {
      return {};
    }
    code = code << 6 | (next & 0x3f);
  }
  return IsCharacter(code, bytes) ? Utf8Character{code, bytes}
                                  : Utf8Character{};
}

std::string Utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t bytes = FirstCharacter(text).bytes;
    valid += bytes == 0 ? "?" : text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return valid;
}

}  // namespace clew
