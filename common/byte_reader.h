#ifndef CLEW_COMMON_BYTE_READER_H_
#define CLEW_COMMON_BYTE_READER_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "common/result.h"

namespace clew {

// A cursor over bytes that we do not trust. A read past the end is an Error,
// never undefined behaviour, and leaves the cursor where it was:
//
//   b1.clew/perf.data: offset 0x8: aux_size needs 8 bytes, only 3 left
//
// Not thread-safe.
class ByteReader {
 public:
  // `bytes` must outlive the reader. `source` names them in messages, which
  // begin with the offset where it is empty; `base_offset` is where in the
  // source they begin.
  ByteReader(std::span<const std::byte> bytes, std::string source,
             uint64_t base_offset = 0);

  // Reads one little-endian integer; `field` is its name in the format page.
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  [[nodiscard]] Result<T> Read(std::string_view field) {
    if (remaining_bytes() < sizeof(T)) {
      return TooShort(field, sizeof(T));
    }
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // The next `count` bytes, borrowed from the input.
  [[nodiscard]] Result<std::span<const std::byte>> ReadBytes(
      uint64_t count, std::string_view field);

  // Text up to and without the first NUL, within the next `field_bytes` bytes,
  // all of which are consumed.
  [[nodiscard]] Result<std::string> ReadText(uint64_t field_bytes,
                                             std::string_view field);

  [[nodiscard]] Status Skip(uint64_t count, std::string_view field);

  // An error located at the cursor: "<source>: offset 0x..: <message>".
  template <class... Args>
  [[nodiscard]] std::unexpected<Error> Corrupt(
      fmt::format_string<Args...> format, Args&&... args) const {
    return CorruptAt(file_offset(),
                     fmt::format(format, std::forward<Args>(args)...));
  }

  uint64_t offset() const { return offset_; }
  uint64_t file_offset() const { return base_offset_ + offset_; }
  uint64_t remaining_bytes() const { return bytes_.size() - offset_; }
  bool at_end() const { return remaining_bytes() == 0; }
  const std::string& source() const { return source_; }

 private:
  std::unexpected<Error> TooShort(std::string_view field,
                                  uint64_t wanted_bytes) const;
  std::unexpected<Error> CorruptAt(uint64_t file_offset,
                                   std::string_view message) const;

  std::span<const std::byte> bytes_;
  std::string source_;
  uint64_t base_offset_;
  size_t offset_ = 0;  // <= bytes_.size()
};

}  // namespace clew

#endif  // CLEW_COMMON_BYTE_READER_H_
