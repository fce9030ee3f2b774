#ifndef CLEW_COMMON_TEXT_ONE_LINE_H_
#define CLEW_COMMON_TEXT_ONE_LINE_H_

#include <string>
#include <string_view>

namespace clew {

// `text` as one line, for files of lines: "\n" for a newline, "\\" for a
// backslash.
std::string EscapeLine(std::string_view text);

// What EscapeLine was given. A backslash before anything else stays.
std::string UnescapeLine(std::string_view line);

// `text` as {:?} writes it, without the quotes: for names that come from files
// that may be anybody's, which no terminal is to obey.
std::string Printable(std::string_view text);

}  // namespace clew

#endif  // CLEW_COMMON_TEXT_ONE_LINE_H_
