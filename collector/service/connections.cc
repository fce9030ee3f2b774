#include "collector/service/connections.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace clew::collector {
namespace {

// How long nothing is accepted after the system had no descriptor to give.
constexpr std::chrono::milliseconds kAcceptPause{100};

struct Peer {
  std::string name;     // as gRPC has it
  std::string network;  // address, or its first 64 bits
};

Peer PeerOf4(const in_addr& address, in_port_t port) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address, text.data(), text.size());
  return {.name = fmt::format("ipv4:{}:{}", text.data(), ntohs(port)),
          .network = text.data()};
}

Peer PeerOf6(const sockaddr_in6& from) {
  if (IN6_IS_ADDR_V4MAPPED(&from.sin6_addr)) {
    in_addr mapped{};
    std::memcpy(&mapped, &from.sin6_addr.s6_addr[12], sizeof mapped);
    return PeerOf4(mapped, from.sin6_port);
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, &from.sin6_addr, text.data(), text.size());
  in6_addr network = from.sin6_addr;
  std::memset(&network.s6_addr[8], 0, 8);
  std::array<char, INET6_ADDRSTRLEN> begin{};
  inet_ntop(AF_INET6, &network, begin.data(), begin.size());
  return {
      .name = fmt::format("ipv6:[{}]:{}", text.data(), ntohs(from.sin6_port)),
      .network = begin.data()};
}

// Returns nullopt if the peer is gone.
std::optional<Peer> PeerOf(const Fd& fd) {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  if (getpeername(fd.get(), reinterpret_cast<sockaddr*>(&from), &size) != 0) {
    return std::nullopt;
  }
  if (from.ss_family == AF_INET6) {
    return PeerOf6(reinterpret_cast<sockaddr_in6&>(from));
  }
  const auto& four = reinterpret_cast<sockaddr_in&>(from);
  return PeerOf4(four.sin_addr, four.sin_port);
}

std::optional<ino_t> InodeOf(int fd) {
  struct stat file{};
  return fstat(fd, &file) == 0 ? std::optional(file.st_ino) : std::nullopt;
}

// gRPC encodes the brackets of an IPv6 address.
std::string WithBrackets(std::string peer) {
  for (const auto& [code, sign] :
       {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    if (const size_t at = peer.find(code); at != peer.npos) {
      peer.replace(at, 3, sign);
    }
  }
  return peer;
}

}  // namespace

Result<std::unique_ptr<Connections>> Connections::Make(
    Fd listening, const ConnectionLimits& limits, Take take) {
  Fd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.is_open()) {
    return SystemError(errno, "cannot make an event descriptor");
  }
  return std::unique_ptr<Connections>(new Connections(
      std::move(listening), std::move(stop), limits, std::move(take)));
}

Connections::Connections(Fd listening, Fd stop, const ConnectionLimits& limits,
                         Take take)
    : listening_(std::move(listening)),
      stop_(std::move(stop)),
      limits_(limits),
      take_(std::move(take)) {}

Connections::~Connections() { Stop(); }

void Connections::Begin() {
  thread_ = std::thread([this] { Run(); });
}

void Connections::Stop() {
  (void)eventfd_write(stop_.get(), 1);
  if (thread_.joinable()) {
    thread_.join();
    // Who still connects is refused and not kept waiting.
    (void)shutdown(listening_.get(), SHUT_RDWR);
  }
}

void Connections::Run() {
  std::array<pollfd, 2> wait = {
      {{.fd = listening_.get(), .events = POLLIN, .revents = 0},
       {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
  while (wait[1].revents == 0) {
    (void)poll(wait.data(), wait.size(), -1);
    if (wait[0].revents != 0) {
      AcceptAll();
    }
  }
}

void Connections::AcceptAll() {
  while (true) {
    Fd fd(accept4(listening_.get(), nullptr, nullptr,
                  SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.is_open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
          errno == ENOBUFS) {
        std::this_thread::sleep_for(kAcceptPause);
      }
      return;
    }
    const int on = 1;
    (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (Enter(fd)) {
      take_(std::move(fd));
    }
  }
}

bool Connections::Enter(const Fd& fd) {
  const auto peer = PeerOf(fd);
  const auto inode = InodeOf(fd.get());
  if (!peer || !inode) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  if (CountOf(peer->network) >= limits_.address_max ||
      connections_.size() >= limits_.total_max) {
    ForgetClosed();
  }
  if (CountOf(peer->network) >= limits_.address_max &&
      !EndOldestStranger(peer->network)) {
    return false;
  }
  if (connections_.size() >= limits_.total_max && !EndOldestStranger("")) {
    return false;
  }
  if (const auto old = connections_.find(peer->name);
      old != connections_.end()) {
    Forget(old);  // closed, or its port would not be used again
  }
  connections_[peer->name] = {.fd = fd.get(),
                              .inode = *inode,
                              .network = peer->network,
                              .number = next_number_++};
  ++by_network_[peer->network];
  return true;
}

size_t Connections::CountOf(const std::string& network) const {
  const auto found = by_network_.find(network);
  return found == by_network_.end() ? 0 : found->second;
}

Connections::Entries::iterator Connections::Forget(Entries::iterator at) {
  const auto count = by_network_.find(at->second.network);
  if (--count->second == 0) {
    by_network_.erase(count);
  }
  return connections_.erase(at);
}

void Connections::ForgetClosed() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    at =
        InodeOf(at->second.fd) == at->second.inode ? std::next(at) : Forget(at);
  }
}

// Whoever got the connection notices its end, and closes it. If that happens
// between the look at the inode and shutdown(), the number may be that of a
// socket of the web page or of sd_notify() by then: one request or one message
// to systemd is lost, and both come again. A duplicate of each descriptor would
// rule this out and cost as many descriptors again as there are connections.
bool Connections::EndOldestStranger(const std::string& network) {
  auto oldest = connections_.end();
  for (auto at = connections_.begin(); at != connections_.end(); ++at) {
    const bool may_go = !at->second.identified &&
                        (network.empty() || at->second.network == network);
    if (may_go && (oldest == connections_.end() ||
                   at->second.number < oldest->second.number)) {
      oldest = at;
    }
  }
  if (oldest == connections_.end()) {
    return false;
  }
  if (InodeOf(oldest->second.fd) == oldest->second.inode) {
    (void)shutdown(oldest->second.fd, SHUT_RDWR);
  }
  Forget(oldest);
  return true;
}

void Connections::Identified(const std::string& peer) {
  const std::lock_guard lock(mutex_);
  if (const auto found = connections_.find(WithBrackets(peer));
      found != connections_.end()) {
    found->second.identified = true;
  }
}

}  // namespace clew::collector
