#include "cli/collector/collector_command.h"

#include <array>
#include <ctime>

namespace clew::cli {

void AddId(Command& command, std::string& id) {
  command.add_option("id", id, "the first digits of its id, 4 or more")
      ->required();
}

void AddRowRange(Command& command, RowRange& range) {
  command.add_option("--offset", range.offset, "leave out so many")
      ->capture_default_str();
  command.add_option("--limit", range.limit, "at most so many")
      ->capture_default_str();
}

std::string ShortId(const std::string& id) {
  constexpr size_t kDigits = 12;
  return id.substr(0, kDigits);
}

std::string TimeText(int64_t time_s) {
  const auto seconds = static_cast<std::time_t>(time_s);
  std::tm utc = {};
  std::array<char, 64> text = {};
  if (time_s == 0 || gmtime_r(&seconds, &utc) == nullptr ||
      std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc) ==
          0) {
    return "-";
  }
  return text.data();
}

std::string Plain(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  return text.empty() ? "-" : text;
}

}  // namespace clew::cli
