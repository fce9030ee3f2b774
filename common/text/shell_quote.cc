#include "common/text/shell_quote.h"

#include <algorithm>

namespace clew {
namespace {

bool NeedsNoQuotes(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || std::string_view("_-./=:,+@%").contains(c);
}

}  // namespace

std::string ShellQuote(std::string_view argument) {
  if (!argument.empty() && std::ranges::all_of(argument, NeedsNoQuotes)) {
    return std::string(argument);
  }
  std::string quoted = "'";
  for (const char c : argument) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

std::string ShellQuote(std::span<const std::string> arguments) {
  std::string line;
  for (const std::string& argument : arguments) {
    line += line.empty() ? "" : " ";
    line += ShellQuote(argument);
  }
  return line;
}

}  // namespace clew
