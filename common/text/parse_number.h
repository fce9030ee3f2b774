#ifndef CLEW_COMMON_TEXT_PARSE_NUMBER_H_
#define CLEW_COMMON_TEXT_PARSE_NUMBER_H_

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace clew {

// All of `text` as a number; nullopt if anything else is in it.
template <class Int>
std::optional<Int> ParseNumber(std::string_view text, int base = 10) {
  Int value = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || rest != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace clew

#endif  // CLEW_COMMON_TEXT_PARSE_NUMBER_H_
