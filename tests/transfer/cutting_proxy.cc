#include "tests/transfer/cutting_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "common/check.h"

namespace clew::transfer {
namespace {

constexpr int kPollMs = 50;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void CloseWithReset(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd);
}

bool SendAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace

CuttingProxy::CuttingProxy(uint16_t to_port, uint64_t mean_bytes, uint64_t seed)
    : to_port_(to_port), mean_bytes_(mean_bytes), random_(seed) {
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  CLEW_CHECK(
      bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
          listen(listen_fd_, 64) == 0 &&
          getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address),
                      &size) == 0,
      "the proxy cannot listen");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

CuttingProxy::~CuttingProxy() {
  stop_ = true;
  acceptor_.join();
  for (std::thread& passer : passers_) {
    passer.join();
  }
  close(listen_fd_);
}

void CuttingProxy::Accept() {
  std::uniform_int_distribution<uint64_t> bytes(1, 2 * mean_bytes_ + 1);
  while (!stop_) {
    pollfd ready{.fd = listen_fd_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kPollMs) != 1) {
      continue;
    }
    const int client = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) {
      continue;
    }
    ++connections_;
    const uint64_t some = mean_bytes_ == 0 ? UINT64_MAX : bytes(random_);
    passers_.emplace_back([this, client, some] { Pass(client, some); });
  }
}

void CuttingProxy::Pass(int client, uint64_t bytes) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(to_port_);
  bool open = connect(server, reinterpret_cast<const sockaddr*>(&address),
                      sizeof address) == 0;
  std::vector<char> buffer(64 << 10);
  while (open && !stop_) {
    pollfd ready[] = {{.fd = client, .events = POLLIN, .revents = 0},
                      {.fd = server, .events = POLLIN, .revents = 0}};
    if (poll(ready, 2, kPollMs) <= 0) {
      continue;
    }
    for (int i = 0; i < 2 && open; ++i) {
      if (ready[i].revents == 0) {
        continue;
      }
      const ssize_t got = recv(ready[i].fd, buffer.data(), buffer.size(), 0);
      const auto size = std::min(bytes, static_cast<uint64_t>(got));
      open = got > 0 && SendAll(ready[1 - i].fd, buffer.data(), size);
      bytes -= open ? size : 0;
      if (open && bytes == 0) {
        ++cuts_;
        open = false;
      }
    }
  }
  CloseWithReset(client);
  CloseWithReset(server);
}

}  // namespace clew::transfer
