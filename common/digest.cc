#include "common/digest.h"

#include <algorithm>

namespace clew {

uint64_t DigestWords(std::span<const std::byte> bytes, uint64_t before) {
  uint64_t digest = before;
  while (!bytes.empty()) {
    const size_t taken = std::min(bytes.size(), sizeof(uint64_t));
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), taken);
    digest = MixBits(digest ^ word);
    bytes = bytes.subspan(taken);
  }
  return digest;
}

}  // namespace clew
