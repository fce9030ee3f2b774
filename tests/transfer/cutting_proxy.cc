#include "tests/transfer/cutting_proxy.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "common/check.h"
#include "tests/support/loopback.h"

namespace clew::transfer {
namespace {

constexpr int kPollMs = 50;
constexpr size_t kBufferBytes = 64 << 10;

bool IsForLater(int error) { return error == EAGAIN || error == EINTR; }

// What one side sends to the other.
class Direction {
 public:
  Direction(int from, int to) : from_(from), to_(to), buffer_(kBufferBytes) {}
  // All of it is with the other side, and its end, too.
  bool over() const { return over_; }
  bool wants_input() const { return !over_ && size_ == 0; }
  bool wants_output() const { return size_ > 0; }

  // Moves what can be moved at once, and takes it off `bytes_left`. False: a
  // side is gone.
  bool Move(uint64_t& bytes_left) {
    return (!wants_input() || Take()) && (!wants_output() || Give(bytes_left));
  }

 private:
  bool Take() {
    const ssize_t got =
        recv(from_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got < 0) {
      return IsForLater(errno);
    }
    if (got == 0) {
      over_ = true;
      (void)shutdown(to_, SHUT_WR);  // fails where that side is gone, too
    }
    begin_ = 0;
    size_ = static_cast<size_t>(got);
    return true;
  }
  bool Give(uint64_t& bytes_left) {
    const ssize_t sent =
        send(to_, buffer_.data() + begin_, std::min(size_, bytes_left),
             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      return IsForLater(errno);
    }
    begin_ += static_cast<size_t>(sent);
    size_ -= static_cast<size_t>(sent);
    bytes_left -= static_cast<uint64_t>(sent);
    return true;
  }

  const int from_;
  const int to_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t size_ = 0;
  bool over_ = false;
};

// A side from which `in` takes and to which `out` gives. Not polled for
// nothing: it would be told again and again that its peer has hung up.
pollfd Wanted(int fd, const Direction& in, const Direction& out) {
  const int events = (in.wants_input() ? POLLIN : 0) |  //
                     (out.wants_output() ? POLLOUT : 0);
  return {.fd = events == 0 ? -1 : fd,
          .events = static_cast<short>(events),
          .revents = 0};
}

void CloseWithReset(Fd fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  CLEW_CHECK(
      setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0,
      "SO_LINGER: {}", std::strerror(errno));
}

// A connection that came, or none. One that was gone again before it was
// accepted is none.
Fd AcceptOne(int listener) {
  pollfd ready{.fd = listener, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, kPollMs) <= 0) {
    return Fd();
  }
  Fd client(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  CLEW_CHECK(client.get() >= 0 || IsForLater(errno) || errno == ECONNABORTED,
             "the proxy cannot accept: {}", std::strerror(errno));
  return client;
}

}  // namespace

CuttingProxy::CuttingProxy(uint16_t to_port, uint64_t mean_bytes, uint64_t seed)
    : to_port_(to_port),
      mean_bytes_(mean_bytes),
      random_(seed),
      listener_(test::ListenAnywhere(port_)),
      acceptor_([this] { Accept(); }) {}

CuttingProxy::~CuttingProxy() {
  stop_ = true;
  acceptor_.join();
  ForgetPassers(/*all=*/true);
}

void CuttingProxy::Accept() {
  std::uniform_int_distribution<uint64_t> bytes(
      1, std::max<uint64_t>(1, 2 * mean_bytes_));
  while (!stop_) {
    Fd client = AcceptOne(listener_.get());
    ForgetPassers(/*all=*/false);
    if (client.get() < 0) {
      continue;
    }
    ++connections_;
    const uint64_t some = mean_bytes_ == 0 ? UINT64_MAX : bytes(random_);
    Passer& passer = passers_.emplace_back();
    passer.thread = std::thread(
        [this, some, &passer, client = std::move(client)]() mutable {
          Pass(std::move(client), some);
          passer.done = true;
        });
  }
}

void CuttingProxy::Pass(Fd client, uint64_t bytes) {
  Fd server = test::TcpSocket();
  bool open = test::Connect(server, to_port_);
  Direction up(client.get(), server.get());
  Direction down(server.get(), client.get());
  while (open && bytes > 0 && !stop_ && !(up.over() && down.over())) {
    pollfd wanted[] = {Wanted(client.get(), up, down),
                       Wanted(server.get(), down, up)};
    poll(wanted, 2, kPollMs);
    open = up.Move(bytes) && down.Move(bytes);
  }
  if (up.over() && down.over()) {
    return;
  }
  cuts_ += open && bytes == 0 ? 1 : 0;
  CloseWithReset(std::move(client));
  CloseWithReset(std::move(server));
}

void CuttingProxy::ForgetPassers(bool all) {
  std::erase_if(passers_, [all](Passer& passer) {
    if (all || passer.done) {
      passer.thread.join();
      return true;
    }
    return false;
  });
}

}  // namespace clew::transfer
