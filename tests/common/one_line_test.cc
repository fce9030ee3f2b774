// Goal: any text comes back from its line, and the line is one.
// Method: all texts of up to five of the characters that matter.
#include "common/text/one_line.h"

#include <gtest/gtest.h>

#include <string>

namespace clew {
namespace {

void ExpectComesBack(const std::string& text, int more) {
  const std::string line = EscapeLine(text);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(UnescapeLine(line), text);
  for (const char c : {'\n', '\\', 'n', 'a'}) {
    if (more > 0) {
      ExpectComesBack(text + c, more - 1);
    }
  }
}

TEST(OneLine, EveryTextComesBack) { ExpectComesBack("", 5); }

TEST(OneLine, ABackslashOfNobodyStays) {
  EXPECT_EQ(UnescapeLine("a\\b\\"), "a\\b\\");
}

TEST(OneLine, PrintableTellsATerminalNothing) {
  EXPECT_EQ(Printable("a plain::word<int>"), "a plain::word<int>");
  for (int byte = 0; byte < 256; ++byte) {
    for (const char c : Printable(std::string(1, static_cast<char>(byte)))) {
      EXPECT_TRUE(c >= ' ' && c < 0x7f) << byte;
    }
  }
}

}  // namespace
}  // namespace clew
