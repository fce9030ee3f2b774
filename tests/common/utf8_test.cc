// Goal: a character is what the Unicode standard calls well-formed UTF-8, and
// nothing else. Method: exhaustive; every code point encoded by rule and read
// again, every sequence of up to three bytes and every begin of four against
// the standard's table of well-formed sequences.

#include "common/text/utf8.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace clew {
namespace {

// The Unicode Standard, table "Well-Formed UTF-8 Byte Sequences": first byte,
// and second byte; what follows is 80..BF.
struct Row {
  int first_min, first_max, second_min, second_max;
  size_t bytes;
};
constexpr std::array<Row, 9> kTable = {{
    {0x00, 0x7f, 0, 0, 1},
    {0xc2, 0xdf, 0x80, 0xbf, 2},
    {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3},
    {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4},
    {0xf4, 0xf4, 0x80, 0x8f, 4},
}};

size_t BytesByTable(std::string_view text) {
  const auto byte = [text](size_t i) {
    return static_cast<int>(static_cast<uint8_t>(text[i]));
  };
  for (const Row& row : kTable) {
    if (byte(0) < row.first_min || byte(0) > row.first_max) {
      continue;
    }
    bool fits = text.size() >= row.bytes;
    for (size_t i = 1; fits && i < row.bytes; ++i) {
      const int low = i == 1 ? row.second_min : 0x80;
      const int high = i == 1 ? row.second_max : 0xbf;
      fits = byte(i) >= low && byte(i) <= high;
    }
    return fits ? row.bytes : 0;
  }
  return 0;
}

std::string Encoded(char32_t code) {
  const auto tail = [code](int shift) {
    return static_cast<char>(0x80 | (code >> shift & 0x3f));
  };
  if (code < 0x80) {
    return {static_cast<char>(code)};
  }
  if (code < 0x800) {
    return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  }
  if (code < 0x10000) {
    return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  }
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8Test, EveryCodePointIsReadAsWritten) {
  for (char32_t code = 0; code < 0x140000; ++code) {
    const std::string text = Encoded(code);
    const bool exists = code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    const Utf8Character read = FirstCharacter(text + "x");
    ASSERT_EQ(read.bytes, exists ? text.size() : 0) << uint32_t{code};
    ASSERT_EQ(read.code, exists ? code : 0) << uint32_t{code};
  }
}

TEST(Utf8Test, EverySequenceIsOneByTheTableOrNone) {
  EXPECT_EQ(FirstCharacter("").bytes, 0);
  for (uint32_t value = 0; value < 1 << 24; ++value) {
    // With and without a fourth byte that may follow.
    const std::array<char, 4> bytes = {static_cast<char>(value >> 16),
                                       static_cast<char>(value >> 8),
                                       static_cast<char>(value), '\x80'};
    for (const size_t size : {3, 4}) {
      const std::string_view text(bytes.data(), size);
      ASSERT_EQ(FirstCharacter(text).bytes, BytesByTable(text)) << value;
    }
  }
}

TEST(Utf8Test, WhatIsCutIsNone) {
  for (const std::string whole :
       {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    for (size_t size = 1; size < whole.size(); ++size) {
      EXPECT_EQ(FirstCharacter(whole.substr(0, size)).bytes, 0);
      EXPECT_EQ(Utf8(whole.substr(0, size)), std::string(size, '?'));
    }
    EXPECT_EQ(Utf8(whole + "\xff" + whole), whole + "?" + whole);
  }
}

}  // namespace
}  // namespace clew
