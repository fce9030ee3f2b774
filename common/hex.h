#ifndef CLEW_COMMON_HEX_H_
#define CLEW_COMMON_HEX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace clew {

// Two lower-case digits a byte: "00ff" for {0x00, 0xff}.
std::string ToHex(std::span<const std::byte> bytes);
std::string ToHex(std::span<const uint8_t> bytes);
std::string ToHex(std::string_view text);

}  // namespace clew

#endif  // CLEW_COMMON_HEX_H_
