#include "collector/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <optional>

#include "common/text/parse_number.h"

namespace clew::collector {
Result<SocketAddress> ParseAddress(std::string_view key,
                                   const std::string& address) {
  const size_t colon = address.rfind(':');
  const auto port =
      colon == std::string::npos
          ? std::nullopt
          : ParseNumber<uint16_t>(std::string_view(address).substr(colon + 1));
  if (!port) {
    return InvalidArgument("{} is {:?}, wanted address:port", key, address);
  }
  SocketAddress parsed{.host = address.substr(0, colon), .port = *port};
  if (parsed.host.starts_with('[') && parsed.host.ends_with(']')) {
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  }
  return parsed;
}

Result<Fd> ListenOn(const SocketAddress& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                  &hints, &found) != 0) {
    return InvalidArgument(
        "cannot listen on {:?}: wanted a numeric address, for example "
        "127.0.0.1",
        address.host);
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found,
                                                             freeaddrinfo);
  Fd fd(
      socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  constexpr int kBacklog = 128;
  if (fd.get() < 0 ||
      setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return SystemError(errno, fmt::format("cannot listen on {} port {}",
                                          address.host, address.port));
  }
  return fd;
}

Result<uint16_t> PortOf(const Fd& listening) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address),
                  &size) != 0) {
    return SystemError(errno, "cannot tell the port of a socket");
  }
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

}  // namespace clew::collector
