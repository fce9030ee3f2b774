#include "common/text/one_line.h"

#include <fmt/format.h>

namespace clew {

std::string EscapeLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n' || c == '\\') {
      line += '\\';
    }
    line += c == '\n' ? 'n' : c;
  }
  return line;
}

std::string UnescapeLine(std::string_view line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    const char next = i + 1 < line.size() ? line[i + 1] : '\0';
    if (line[i] == '\\' && (next == 'n' || next == '\\')) {
      text += next == 'n' ? '\n' : '\\';
      ++i;
    } else {
      text += line[i];
    }
  }
  return text;
}

std::string Printable(std::string_view text) {
  const std::string quoted = fmt::format("{:?}", text);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace clew
