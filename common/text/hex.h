#ifndef CLEW_COMMON_TEXT_HEX_H_
#define CLEW_COMMON_TEXT_HEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace clew {

// Two lower-case digits a byte: "00ff" for {0x00, 0xff}.
std::string ToHex(std::span<const std::byte> bytes);
std::string ToHex(std::span<const uint8_t> bytes);
std::string ToHex(std::string_view text);

// Returns whether all of `text` are digits as ToHex writes them; true of "".
bool IsHex(std::string_view text);

// Returns the value of a hexadecimal digit of either case, or nullopt.
std::optional<uint8_t> HexDigitValue(char c);

}  // namespace clew

#endif  // CLEW_COMMON_TEXT_HEX_H_
