#ifndef CLEW_BUNDLE_MANIFEST_WIRE_FAULT_H_
#define CLEW_BUNDLE_MANIFEST_WIRE_FAULT_H_

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

// Says what protobuf does not: where bytes stop being a message.

namespace clew::bundle {

struct WireFault {
  uint64_t offset = 0;  // in the bytes
  // Field, what was found, what was wanted: "Manifest.producer: length is 300,
  // only 12 bytes are left".
  std::string message;
};

// The first place at which `bytes` break protobuf's wire format as a message of
// `type`; nothing if they do not. Agrees with protobuf's parser on which bytes
// are a message. Time and stack are bounded by the size and by protobuf's limit
// of 100 nested messages.
std::optional<WireFault> FindWireFault(
    std::span<const std::byte> bytes, const google::protobuf::Descriptor& type);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_MANIFEST_WIRE_FAULT_H_
