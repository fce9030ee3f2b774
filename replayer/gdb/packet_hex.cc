#include "replayer/gdb/packet_hex.h"

#include <limits>

#include "common/text/hex.h"

namespace clew::replayer::gdb {

std::optional<std::string> FromHex(std::string_view digits) {
  if (digits.size() % 2 != 0) {
    return std::nullopt;
  }
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (size_t i = 0; i < digits.size(); i += 2) {
    const auto high = HexDigitValue(digits[i]);
    const auto low = HexDigitValue(digits[i + 1]);
    if (!high || !low) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(*high << 4 | *low));
  }
  return bytes;
}

bool FieldReader::Take(std::string_view wanted) {
  if (!rest_.starts_with(wanted)) {
    return false;
  }
  rest_.remove_prefix(wanted.size());
  return true;
}

std::optional<uint64_t> FieldReader::TakeHex() {
  uint64_t value = 0;
  size_t used = 0;
  while (used < rest_.size()) {
    const auto digit = HexDigitValue(rest_[used]);
    if (!digit) {
      break;
    }
    if (used == 16) {
      return std::nullopt;
    }
    value = value << 4 | *digit;
    ++used;
  }
  if (used == 0) {
    return std::nullopt;
  }
  rest_.remove_prefix(used);
  return value;
}

std::optional<uint64_t> FieldReader::TakeCommaHex() {
  FieldReader ahead(rest_);
  const auto value = ahead.Take(",") ? ahead.TakeHex() : std::nullopt;
  if (value) {
    *this = ahead;
  }
  return value;
}

std::optional<int32_t> FieldReader::TakeThread() {
  if (Take("-1")) {
    return -1;
  }
  FieldReader ahead(rest_);
  const auto value = ahead.TakeHex();
  if (!value || *value > std::numeric_limits<int32_t>::max()) {
    return std::nullopt;
  }
  *this = ahead;
  return static_cast<int32_t>(*value);
}

std::string_view FieldReader::TakeUntil(char end) {
  const size_t at = rest_.find(end);
  const std::string_view field = rest_.substr(0, at);
  rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + 1);
  return field;
}

}  // namespace clew::replayer::gdb
