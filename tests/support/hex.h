#ifndef CLEW_TESTS_SUPPORT_HEX_H_
#define CLEW_TESTS_SUPPORT_HEX_H_

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>

namespace clew::test {

// "0f 0b ", for messages.
inline std::string Hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    text += fmt::format("{:02x} ", byte);
  }
  return text;
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_HEX_H_
