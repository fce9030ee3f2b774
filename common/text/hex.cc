#include "common/text/hex.h"

namespace clew {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string ToHex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    text.push_back(kDigits[std::to_integer<size_t>(byte) >> 4]);
    text.push_back(kDigits[std::to_integer<size_t>(byte) & 15]);
  }
  return text;
}

std::string ToHex(std::span<const uint8_t> bytes) {
  return ToHex(std::as_bytes(bytes));
}

std::string ToHex(std::string_view text) {
  return ToHex(std::as_bytes(std::span(text)));
}

bool IsHex(std::string_view text) {
  return text.find_first_not_of(kDigits) == std::string_view::npos;
}

std::optional<uint8_t> HexDigitValue(char c) {
  const char lower =
      c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  const size_t value = kDigits.find(lower);
  return value == std::string_view::npos
             ? std::nullopt
             : std::optional(static_cast<uint8_t>(value));
}

}  // namespace clew
