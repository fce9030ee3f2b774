#ifndef CLEW_BUNDLE_MANIFEST_MESSAGE_H_
#define CLEW_BUNDLE_MANIFEST_MESSAGE_H_

#include <google/protobuf/message.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "common/result.h"

// Parses protobuf messages of a bundle from bytes that are not trusted.

namespace clew::bundle {

// The most bytes that protobuf reads as one message.
inline constexpr size_t kMessageBytesMax = INT32_MAX;

// Parses a message. Returns false if the bytes are not one of that type or are
// more than kMessageBytesMax. Unlike protobuf's own, it prints nothing.
bool ParseMessage(std::span<const std::byte> bytes,
                  google::protobuf::MessageLite& message);

// Returns why ParseMessage refused `bytes` as a message of the type of
// `wanted`, with the place of the field: "<where>: offset 0x1f:
// Manifest.producer: length is 300, only 12 bytes are left". `base_offset` is
// where in the file the bytes begin.
[[nodiscard]] std::unexpected<Error> NoMessage(
    std::span<const std::byte> bytes, const google::protobuf::Message& wanted,
    const std::string& where, uint64_t base_offset = 0);

// Reads the file at `path` as a message. Fails with kCorruptInput if it is not
// one of this type; the error says where.
[[nodiscard]] Status ReadMessage(const std::string& path,
                                 google::protobuf::Message& message);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_MANIFEST_MESSAGE_H_
