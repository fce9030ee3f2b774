#ifndef CLEW_RECORDER_QEMU_WIRE_H_
#define CLEW_RECORDER_QEMU_WIRE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace clew::recorder {

// Writes fields in protobuf's wire format, for the process that is being
// recorded: there libprotobuf would be a stranger, and messages with memory
// contents must not be built in memory. Field numbers are those of
// proto/bundle.proto; tests/recorder reads the result with the generated code.
//
// Source: "Protocol Buffers, Encoding".
class Wire {
 public:
  // Values of 0 are left out, as proto3 does. A negative number goes as its
  // 64-bit two's complement.
  void Number(uint32_t field, uint64_t value);
  void Text(uint32_t field, std::string_view bytes);
  // The head of a length-delimited field; `length_bytes` bytes must follow.
  void Head(uint32_t field, uint64_t length_bytes);
  void Varint(uint64_t value);

  const std::string& bytes() const { return bytes_; }
  void Clear() { bytes_.clear(); }

  static uint64_t VarintBytes(uint64_t value);
  // Bytes of a whole length-delimited field.
  static uint64_t FieldBytes(uint32_t field, uint64_t length_bytes);

 private:
  std::string bytes_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_WIRE_H_
