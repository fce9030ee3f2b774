#ifndef CLEW_DECODER_BUNDLE_CONVERT_H_
#define CLEW_DECODER_BUNDLE_CONVERT_H_

#include <cstddef>
#include <span>
#include <string>

#include "common/inputs.h"
#include "common/result.h"
#include "common/schedule.h"
#include "decoder/bundle_reader.h"
#include "proto/bundle.pb.h"

// Protobuf messages to plain values and back. Every field is checked against
// its range in proto/bundle.proto; `where` begins each message.

namespace clew::decoder {

// Parses a message; false if the bytes are none. Unlike protobuf's own, it
// prints nothing. `bytes` must be fewer than 2^31.
bool ParseMessage(std::span<const std::byte> bytes,
                  google::protobuf::MessageLite& message);

// Why ParseMessage refused `bytes` as a message of the type of `wanted`,
// located at the field: "<where>: offset 0x1f: Manifest.producer: length is
// 300, only 12 bytes are left". `base_offset` is where in the file the bytes
// begin.
[[nodiscard]] std::unexpected<Error> NoMessage(
    std::span<const std::byte> bytes, const google::protobuf::Message& wanted,
    const std::string& where, uint64_t base_offset = 0);

// `bundle_path` is where images lie.
[[nodiscard]] Result<Manifest> ToManifest(const pb::Manifest& from,
                                          const std::string& where,
                                          const std::string& bundle_path);
[[nodiscard]] Result<StartState> ToStart(const pb::Start& from,
                                         const std::string& where);
[[nodiscard]] Result<InputRecord> ToInput(const pb::Input& from,
                                          const std::string& where);
[[nodiscard]] Result<Schedule> ToSchedule(const pb::Schedule& from,
                                          const std::string& where);
pb::Schedule FromSchedule(const Schedule& from);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_BUNDLE_CONVERT_H_
