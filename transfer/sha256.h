#ifndef CLEW_TRANSFER_SHA256_H_
#define CLEW_TRANSFER_SHA256_H_

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/text/hex.h"

namespace clew::transfer {

// SHA-256 (FIPS 180-4) of bytes that come in pieces. Moves; not thread-safe.
class Sha256 {
 public:
  static constexpr size_t kBytes = 32;
  using Value = std::array<std::byte, kBytes>;

  Sha256();
  Sha256(Sha256&& other) noexcept;
  Sha256& operator=(Sha256&& other) noexcept;
  ~Sha256();

  // REQUIRES: Finish was not called.
  void Add(std::span<const std::byte> bytes);
  // The digest of everything added. REQUIRES: called once, last.
  [[nodiscard]] Value Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Sha256::Value Sha256Of(std::span<const std::byte> bytes);
// RFC 2104.
Sha256::Value HmacSha256(std::span<const std::byte> key,
                         std::span<const std::byte> bytes);

// ToHex's 64 digits back; anything else is nullopt.
std::optional<Sha256::Value> FromHex(std::string_view text);

// The name of something by its content. `Of` says what kind of thing.
template <class Of>
class ContentId {
 public:
  explicit ContentId(const Sha256::Value& value) : value_(value) {}
  // REQUIRES: bytes.size() == Sha256::kBytes.
  explicit ContentId(std::span<const std::byte> bytes) {
    std::ranges::copy(bytes.first<Sha256::kBytes>(), value_.begin());
  }
  static std::optional<ContentId> Parse(std::string_view hex) {
    const auto value = FromHex(hex);
    return value ? std::optional(ContentId(*value)) : std::nullopt;
  }

  std::span<const std::byte> bytes() const { return value_; }
  std::string hex() const { return ToHex(value_); }
  auto operator<=>(const ContentId&) const = default;

 private:
  Sha256::Value value_;
};

using ChunkId = ContentId<struct ChunkTag>;    // SHA-256 of a chunk's bytes
using BundleId = ContentId<struct BundleTag>;  // of a file list, canonically

}  // namespace clew::transfer

#endif  // CLEW_TRANSFER_SHA256_H_
