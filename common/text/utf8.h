#ifndef CLEW_COMMON_TEXT_UTF8_H_
#define CLEW_COMMON_TEXT_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace clew {

struct Utf8Character {
  char32_t code = 0;
  size_t bytes = 0;  // 0: the text begins with no character
};

// Decodes the character that `text` begins with: no surrogates, nothing
// overlong, at most U+10FFFF.
//
// Source: The Unicode Standard, "Well-Formed UTF-8 Byte Sequences".
Utf8Character FirstCharacter(std::string_view text);

// Returns `text` as protobuf's strings are to be: each byte that belongs to no
// character becomes "?".
std::string Utf8(std::string_view text);

}  // namespace clew

#endif  // CLEW_COMMON_TEXT_UTF8_H_
