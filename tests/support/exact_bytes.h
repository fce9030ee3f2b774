#ifndef CLEW_TESTS_SUPPORT_EXACT_BYTES_H_
#define CLEW_TESTS_SUPPORT_EXACT_BYTES_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace clew {

// Returns a copy that has no room behind its last byte, as a string has: there
// AddressSanitizer sees a reader that goes too far.
inline std::vector<std::byte> ExactBytes(std::string_view bytes) {
  const auto all = std::as_bytes(std::span(bytes));
  return {all.begin(), all.end()};
}

}  // namespace clew

#endif  // CLEW_TESTS_SUPPORT_EXACT_BYTES_H_
