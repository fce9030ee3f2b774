#include "common/digest.h"

namespace clew {

uint64_t Digest(std::span<const std::byte> bytes, uint64_t before) {
  uint64_t hash = before;
  for (const std::byte byte : bytes) {
    hash = (hash ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace clew
