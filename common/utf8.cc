#include "common/utf8.h"

#include <cstddef>
#include <cstdint>

namespace clew {
namespace {

// How many bytes the UTF-8 character at the front of `text` has; 0 if there is
// none. (RFC 3629: no surrogates, nothing overlong, at most U+10FFFF.)
size_t CharacterBytes(std::string_view text) {
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  const auto follows = [byte](size_t i, uint8_t from, uint8_t to) {
    return byte(i) >= from && byte(i) <= to;
  };
  const uint8_t lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xc2 && lead <= 0xdf) {
    return follows(1, 0x80, 0xbf) ? 2 : 0;
  }
  if (lead >= 0xe0 && lead <= 0xef) {
    const uint8_t from = lead == 0xe0 ? 0xa0 : 0x80;
    const uint8_t to = lead == 0xed ? 0x9f : 0xbf;
    return follows(1, from, to) && follows(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const uint8_t from = lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t to = lead == 0xf4 ? 0x8f : 0xbf;
    return follows(1, from, to) && follows(2, 0x80, 0xbf) &&
                   follows(3, 0x80, 0xbf)
               ? 4
               : 0;
  }
  return 0;
}

}  // namespace

std::string Utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    valid += bytes == 0 ? "?" : text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return valid;
}

}  // namespace clew
