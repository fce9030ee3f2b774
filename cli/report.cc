#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace clew::cli {
namespace {

bool NeedsNoQuotes(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') ||
         std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
}

}  // namespace

int ReportError(const Error& error) {
  // Text before an error must not come out after it.
  std::fflush(stdout);
  fmt::print(stderr, "clew: {}\n", error.message);
  return ExitCodeOf(error.code);
}

int ReportStatus(const Status& status) {
  return status ? kExitOk : ReportError(status.error());
}

void Warn(std::string_view message) {
  std::fflush(stdout);
  fmt::print(stderr, "clew: {}, proceeding anyway\n", message);
}

void PrintJson(const Json& document) {
  fmt::print("{}\n", document.dump(2, ' ', /*ensure_ascii=*/false,
                                   Json::error_handler_t::replace));
}

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

}  // namespace clew::cli
