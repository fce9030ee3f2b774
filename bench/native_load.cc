#include "bench/native_load.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "common/os/fd.h"

namespace clew::bench {
namespace {

constexpr int kLookMs = 50;  // between two looks at whether it is over

Fd Connect(const std::string& path) {
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    fd.Close();
    std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
  }
  return fd;
}

enum class Answer : uint8_t { kWhole, kClosed, kNone };

Answer Receive(int fd, const std::string& end, const std::atomic<bool>& stop) {
  std::string received;
  while (!stop) {
    pollfd waits = {.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, kLookMs) <= 0) {
      continue;
    }
    char buffer[4096];
    const ssize_t bytes = read(fd, buffer, sizeof(buffer));
    if (bytes <= 0) {
      return Answer::kClosed;
    }
    received.append(buffer, static_cast<size_t>(bytes));
    if (!end.empty() && received.ends_with(end)) {
      return Answer::kWhole;
    }
  }
  return Answer::kNone;
}

}  // namespace

Load::Load(std::string socket_path, Request request, int clients)
    : socket_path_(std::move(socket_path)), request_(std::move(request)) {
  clients_.reserve(static_cast<size_t>(clients));
  for (int i = 0; i < clients; ++i) {
    clients_.emplace_back([this] { Ask(); });
  }
}

Load::~Load() {
  is_over_ = true;
  for (std::thread& client : clients_) {
    client.join();
  }
}

bool Load::Await(uint64_t answers) const {
  for (int i = 0; answers_ < answers; ++i) {
    if (i == 60'000 / kLookMs) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
  }
  return true;
}

void Load::Ask() {
  Fd server;
  while (!is_over_) {
    if (!server.is_open()) {
      server = Connect(socket_path_);
      continue;
    }
    if (send(server.get(), request_.text.data(), request_.text.size(),
             MSG_NOSIGNAL) != static_cast<ssize_t>(request_.text.size())) {
      server.Close();
      continue;
    }
    const Answer answer = Receive(server.get(), request_.answer_end, is_over_);
    if (answer == Answer::kClosed) {
      server.Close();
    }
    const Answer wanted =
        request_.answer_end.empty() ? Answer::kClosed : Answer::kWhole;
    answers_ += answer == wanted ? 1 : 0;
  }
}

}  // namespace clew::bench
