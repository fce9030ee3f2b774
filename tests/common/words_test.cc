// Goal: words and blanks of a text are told apart, whatever their number, and
// nothing of a word is lost.
// Method: all texts of up to six of a letter, the blanks and a character that
// is one of a line's alone; the oracle takes them one at a time.
#include "common/text/words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clew {
namespace {

std::vector<std::string> WordsOf(const std::string& text,
                                 std::string_view blanks) {
  std::vector<std::string> words;
  bool in_word = false;
  for (const char c : text) {
    const bool is_blank = blanks.find(c) != std::string_view::npos;
    if (!is_blank && !in_word) {
      words.emplace_back();
    }
    if (!is_blank) {
      words.back() += c;
    }
    in_word = !is_blank;
  }
  return words;
}

void Check(const std::string& text, std::string_view blanks) {
  std::vector<std::string> taken;
  std::string_view rest = text;
  for (std::string_view word = TakeWord(rest, blanks); !word.empty();
       word = TakeWord(rest, blanks)) {
    taken.emplace_back(word);
  }
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(taken, WordsOf(text, blanks)) << testing::PrintToString(text);
  std::string trimmed = text;
  while (!trimmed.empty() && blanks.find(trimmed.back()) != blanks.npos) {
    trimmed.pop_back();
  }
  while (!trimmed.empty() && blanks.find(trimmed.front()) != blanks.npos) {
    trimmed.erase(0, 1);
  }
  EXPECT_EQ(Trimmed(text, blanks), trimmed) << testing::PrintToString(text);
}

void CheckAll(const std::string& text, int more) {
  Check(text, kBlanks);
  Check(text, kLineBlanks);
  for (const char c : {'a', ' ', '\t', '\r'}) {
    if (more > 0) {
      CheckAll(text + c, more - 1);
    }
  }
}

TEST(WordsTest, EveryShortTextIsTakenApart) { CheckAll("", 6); }

TEST(WordsTest, WhatIsBehindAWordStays) {
  std::string_view text = "  one\ttwo three ";
  EXPECT_EQ(TakeWord(text), "one");
  EXPECT_EQ(text, "\ttwo three ");
  EXPECT_EQ(Trimmed(text), "two three");
}

}  // namespace
}  // namespace clew
