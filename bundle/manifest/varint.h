#ifndef CLEW_BUNDLE_MANIFEST_VARINT_H_
#define CLEW_BUNDLE_MANIFEST_VARINT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace clew::bundle {

inline constexpr uint32_t kVarintBytesMax = 10;

// Reads a varint (protobuf, "Encoding") of at most `bytes_max` bytes and moves
// `at` behind it; nullopt, with `at` where it was, if it is cut or longer.
inline std::optional<uint64_t> ReadVarint(
    std::span<const std::byte> bytes, uint64_t& at,
    uint32_t bytes_max = kVarintBytesMax) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < bytes_max && at + i < bytes.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[at + i]);
    value |= uint64_t{byte & 0x7fu} << (7 * i);
    if ((byte & 0x80) == 0) {
      at += i + 1;
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_MANIFEST_VARINT_H_
