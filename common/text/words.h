#ifndef CLEW_COMMON_TEXT_WORDS_H_
#define CLEW_COMMON_TEXT_WORDS_H_

#include <string_view>

namespace clew {

// What is between words, and of a line that may end in CR LF.
inline constexpr std::string_view kBlanks = " \t";
inline constexpr std::string_view kLineBlanks = " \t\r";

// Takes the first word, and the blanks before it, off `text` and returns it;
// empty if there are nothing but blanks.
std::string_view TakeWord(std::string_view& text,
                          std::string_view blanks = kBlanks);

// Returns `text` without the blanks at its ends.
std::string_view Trimmed(std::string_view text,
                         std::string_view blanks = kBlanks);

}  // namespace clew

#endif  // CLEW_COMMON_TEXT_WORDS_H_
