#ifndef CLEW_COLLECTOR_SOCKET_H_
#define CLEW_COLLECTOR_SOCKET_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/os/fd.h"
#include "common/result.h"

namespace clew::collector {

struct SocketAddress {
  std::string host;  // without brackets
  uint16_t port = 0;
};

// "127.0.0.1:80" or "[::1]:80", the value of `key`, in its two parts.
// kInvalidArgument.
[[nodiscard]] Result<SocketAddress> ParseAddress(std::string_view key,
                                                 const std::string& address);

// A socket that listens and does not block. kInvalidArgument: the host is not
// numeric. kSystem.
[[nodiscard]] Result<Fd> ListenOn(const SocketAddress& address);
// REQUIRES: a socket that ListenOn made.
[[nodiscard]] Result<uint16_t> PortOf(const Fd& listening);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SOCKET_H_
