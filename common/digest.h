#ifndef CLEW_COMMON_DIGEST_H_
#define CLEW_COMMON_DIGEST_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace clew {

// A well-mixed function of one word (the finaliser of SplitMix64, Steele, Lea,
// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
constexpr uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A 64-bit digest of bytes: the FNV-1a hash. It tells accidents apart, not
// attacks. Digest(b, Digest(a)) is the digest of a followed by b.
inline constexpr uint64_t kEmptyDigest = 0xcbf29ce484222325u;
constexpr uint64_t Digest(std::span<const std::byte> bytes,
                          uint64_t before = kEmptyDigest) {
  uint64_t hash = before;
  for (const std::byte byte : bytes) {
    hash = (hash ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3u;
  }
  return hash;
}

// The same of 64-bit words, least significant byte first, the last one filled
// up with zeros: d = MixBits(d ^ word) for each. Eight times as fast.
uint64_t DigestWords(std::span<const std::byte> bytes, uint64_t before);

// A small deterministic generator (SplitMix64), the same on every host.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() { return MixBits(state_ += 0x9e3779b97f4a7c15u); }
  // Uniform in [0, bound), up to a bias below 2^-32 for bounds below 2^32.
  // REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound) { return Next() % bound; }

 private:
  uint64_t state_;
};

}  // namespace clew

#endif  // CLEW_COMMON_DIGEST_H_
