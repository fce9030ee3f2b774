#ifndef CLEW_TESTS_SUPPORT_LOOPBACK_H_
#define CLEW_TESTS_SUPPORT_LOOPBACK_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "common/check.h"
#include "common/os/fd.h"

// TCP within this host, for tests.

namespace clew::test {

// 127.0.0.1; port 0 is any that is free.
inline sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline Fd TcpSocket() {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CLEW_CHECK(fd.get() >= 0, "no socket: {}", std::strerror(errno));
  return fd;
}

// False, with errno, if it cannot be.
inline bool Bind(const Fd& fd, uint16_t port) {
  const sockaddr_in address = Loopback(port);
  return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0;
}
inline bool Connect(const Fd& fd, uint16_t port) {
  const sockaddr_in address = Loopback(port);
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)) == 0;
}

// Has a port that was free. Nobody listens there, and nobody else can as long
// as this lives: who connects is refused.
inline Fd BindAnywhere(uint16_t& port) {
  Fd fd = TcpSocket();
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  CLEW_CHECK(Bind(fd, 0) &&
                 getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address),
                             &size) == 0,
             "no port: {}", std::strerror(errno));
  port = ntohs(address.sin_port);
  return fd;
}

// Listens on a port that was free.
inline Fd ListenAnywhere(uint16_t& port) {
  Fd fd = BindAnywhere(port);
  CLEW_CHECK(listen(fd.get(), SOMAXCONN) == 0, "cannot listen: {}",
             std::strerror(errno));
  return fd;
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_LOOPBACK_H_
