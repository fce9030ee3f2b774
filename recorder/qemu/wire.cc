#include "recorder/qemu/wire.h"

namespace clew::recorder {
namespace {

constexpr uint64_t Tag(uint32_t field, uint32_t wire_type) {
  return uint64_t{field} << 3 | wire_type;
}
constexpr uint32_t kVarintType = 0;
constexpr uint32_t kLengthType = 2;

}  // namespace

void Wire::Number(uint32_t field, uint64_t value) {
  if (value != 0) {
    Varint(Tag(field, kVarintType));
    Varint(value);
  }
}

void Wire::Text(uint32_t field, std::string_view bytes) {
  if (!bytes.empty()) {
    Head(field, bytes.size());
    bytes_.append(bytes);
  }
}

void Wire::Head(uint32_t field, uint64_t length_bytes) {
  Varint(Tag(field, kLengthType));
  Varint(length_bytes);
}

void Wire::Varint(uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

uint64_t Wire::VarintBytes(uint64_t value) {
  uint64_t count = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++count;
  }
  return count;
}

uint64_t Wire::FieldBytes(uint32_t field, uint64_t length_bytes) {
  return VarintBytes(Tag(field, kLengthType)) + VarintBytes(length_bytes) +
         length_bytes;
}

}  // namespace clew::recorder
