#ifndef CLEW_COLLECTOR_WEB_SOCKET_H_
#define CLEW_COLLECTOR_WEB_SOCKET_H_

#include <cstdint>
#include <string>

#include "common/fd.h"
#include "common/result.h"

namespace clew::collector::web {

// A socket that listens and does not block. kInvalidArgument: `address` is not
// numeric. kSystem.
[[nodiscard]] Result<Fd> ListenOn(const std::string& address, uint16_t port);
// REQUIRES: a socket that ListenOn made.
[[nodiscard]] Result<uint16_t> PortOf(const Fd& listening);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_SOCKET_H_
