#include "common/byte_reader.h"

#include <algorithm>
#include <utility>

namespace clew {

ByteReader::ByteReader(std::span<const std::byte> bytes, std::string source,
                       uint64_t base_offset)
    : bytes_(bytes), source_(std::move(source)), base_offset_(base_offset) {}

Result<std::span<const std::byte>> ByteReader::ReadBytes(
    uint64_t count, std::string_view field) {
  if (remaining_bytes() < count) {
    return TooShort(field, count);
  }
  const auto bytes = bytes_.subspan(offset_, count);
  offset_ += count;
  return bytes;
}

Result<std::string> ByteReader::ReadText(uint64_t field_bytes,
                                         std::string_view field) {
  CLEW_ASSIGN_OR_RETURN(bytes, ReadBytes(field_bytes, field));
  const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
  return std::string(reinterpret_cast<const char*>(bytes.data()),
                     static_cast<size_t>(end - bytes.begin()));
}

Status ByteReader::Skip(uint64_t count, std::string_view field) {
  CLEW_RETURN_IF_ERROR(ReadBytes(count, field));
  return {};
}

std::unexpected<Error> ByteReader::TooShort(std::string_view field,
                                            uint64_t wanted_bytes) const {
  return Corrupt("{} needs {} bytes, only {} left", field, wanted_bytes,
                 remaining_bytes());
}

std::unexpected<Error> ByteReader::CorruptAt(uint64_t file_offset,
                                             std::string_view message) const {
  return CorruptInput("{}{}offset {:#x}: {}", source_,
                      source_.empty() ? "" : ": ", file_offset, message);
}

}  // namespace clew
