#ifndef CLEW_COMMON_BYTES_H_
#define CLEW_COMMON_BYTES_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Bytes and the strings in which protobuf keeps them.

namespace clew {

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline std::vector<std::byte> ToBytes(std::string_view text) {
  const auto bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

inline std::string ToText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace clew

#endif  // CLEW_COMMON_BYTES_H_
