#ifndef CLEW_TRANSFER_PROTOCOL_H_
#define CLEW_TRANSFER_PROTOCOL_H_

#include <cstdint>
#include <string_view>

namespace clew::transfer {

// What a collector and its clients must agree on beside proto/collector.proto.

// The version that is spoken, and the metadata of a call that tells it.
inline constexpr uint32_t kProtocol = 1;
inline constexpr const char* kProtocolKey = "clew-protocol";
inline constexpr const char* kAuthorizationKey = "authorization";

// Of a schedule that is kept, sent and taken.
inline constexpr uint64_t kScheduleBytesMax = uint64_t{64} << 20;

// Whether host:port is of this host alone: 127.0.0.1, [::1] or localhost.
constexpr bool IsLoopback(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  return host == "127.0.0.1" || host == "[::1]" || host == "localhost";
}

}  // namespace clew::transfer

#endif  // CLEW_TRANSFER_PROTOCOL_H_
