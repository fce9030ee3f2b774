#ifndef CLEW_RECORDER_BYTE_BUILDER_H_
#define CLEW_RECORDER_BYTE_BUILDER_H_

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace clew::recorder {

static_assert(std::endian::native == std::endian::little);

// Bytes of a file format, put together field by field, little-endian. Not
// thread-safe.
class ByteBuilder {
 public:
  template <std::integral Int>
  ByteBuilder& Put(Int value) {
    return PutBytes(std::as_bytes(std::span(&value, 1)));
  }
  ByteBuilder& PutBytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  ByteBuilder& PutZeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  // `text`, a NUL, and more up to a multiple of `multiple` bytes.
  ByteBuilder& PutPaddedText(std::string_view text, size_t multiple) {
    PutBytes(std::as_bytes(std::span(text)));
    return PutZeros(multiple - text.size() % multiple);
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  void Clear() { bytes_.clear(); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_BYTE_BUILDER_H_
