#include "replayer/gdb/gdb_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "replayer/gdb/gdb_packet.h"
#include "replayer/gdb/gdb_session.h"

namespace clew::replayer::gdb {
namespace {

Result<Fd> Listen(int family, const sockaddr* address, socklen_t size,
                  const std::string& name) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open() || ::bind(socket.get(), address, size) != 0 ||
      ::listen(socket.get(), 1) != 0) {
    return SystemError(errno, "cannot listen on " + name);
  }
  return socket;
}

// One gdb: frames and acknowledgements around a GdbSession.
class Connection final : private GdbClient {
 public:
  Connection(int in_fd, int out_fd, Timeline& timeline, ImageFiles& files)
      : in_fd_(in_fd), out_fd_(out_fd), session_(timeline, files, *this) {}

  Status Serve();

 private:
  // gdb waits for the reply to its last command, so more than a few items at
  // once come only from a client that is not gdb.
  static constexpr size_t kQueuedMax = 64;

  bool Interrupted() override;
  void Notify(std::string_view payload) override;

  bool Receive(int timeout_ms);
  void Sort(Incoming item);
  void Answer(const std::string& packet);
  void Send(std::string_view bytes);

  int in_fd_;
  int out_fd_;
  GdbPacketReader reader_;
  std::deque<std::string> queued_;
  std::string last_frame_;
  bool acknowledge_ = true;
  bool interrupt_ = false;
  bool running_ = false;  // a command is at work
  bool closed_ = false;
  GdbSession session_;
};

Status Connection::Serve() {
  while (!closed_) {
    if (queued_.empty()) {
      Receive(-1);
      continue;
    }
    const std::string packet = std::move(queued_.front());
    queued_.pop_front();
    Answer(packet);
  }
  return {};
}

void Connection::Answer(const std::string& packet) {
  running_ = true;
  const Reply reply = session_.Handle(packet);
  running_ = false;
  interrupt_ = false;
  if (reply.send) {
    last_frame_ = MakeFrame(reply.payload);
    Send(last_frame_);
  }
  acknowledge_ = acknowledge_ && !reply.stop_acknowledging;
  closed_ = closed_ || reply.close;
}

bool Connection::Interrupted() {
  while (!closed_ && Receive(0)) {
  }
  return std::exchange(interrupt_, false) || closed_;
}

void Connection::Notify(std::string_view payload) {
  last_frame_ = MakeFrame(payload);
  Send(last_frame_);
}

// False if nothing came within the time.
bool Connection::Receive(int timeout_ms) {
  pollfd poll = {in_fd_, POLLIN, 0};
  const int ready = ::poll(&poll, 1, timeout_ms);
  if (ready <= 0) {
    closed_ = closed_ || (ready < 0 && errno != EINTR);
    return false;
  }
  std::array<std::byte, 4096> buffer;
  const ssize_t got = ::read(in_fd_, buffer.data(), buffer.size());
  if (got <= 0) {
    closed_ = closed_ || got == 0 || errno != EINTR;
    return false;
  }
  auto bytes =
      std::span<const std::byte>(buffer).first(static_cast<size_t>(got));
  while (auto item = reader_.Next(bytes)) {
    Sort(std::move(*item));
  }
  return true;
}

void Connection::Sort(Incoming item) {
  switch (item.kind) {
    case Incoming::Kind::kPacket:
      if (acknowledge_) {
        Send("+");
      }
      if (queued_.size() >= kQueuedMax) {
        closed_ = true;
        return;
      }
      queued_.push_back(std::move(item.payload));
      return;
    case Incoming::Kind::kDamaged:
      if (acknowledge_) {
        Send("-");
      }
      return;
    case Incoming::Kind::kNack:
      if (acknowledge_ && !running_) {
        Send(last_frame_);
      }
      return;
    case Incoming::Kind::kInterrupt:
      // May come right behind the command that it interrupts.
      interrupt_ = interrupt_ || running_ || !queued_.empty();
      return;
    case Incoming::Kind::kAck:
      return;
  }
}

void Connection::Send(std::string_view bytes) {
  while (!bytes.empty() && !closed_) {
    ssize_t sent = ::send(out_fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == ENOTSOCK) {
      sent = ::write(out_fd_, bytes.data(), bytes.size());
    }
    if (sent < 0 && errno != EINTR) {
      closed_ = true;  // gdb is gone
      return;
    }
    bytes.remove_prefix(sent > 0 ? static_cast<size_t>(sent) : 0);
  }
}

}  // namespace

Result<Fd> ListenUnix(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return InvalidArgument("socket path {:?} has {} bytes, at most {} work",
                           path, path.size(), sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return Listen(AF_UNIX, reinterpret_cast<const sockaddr*>(&address),
                sizeof(address), path);
}

Result<Fd> ListenLoopback(uint16_t& port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  auto socket = Listen(AF_INET, reinterpret_cast<const sockaddr*>(&address),
                       sizeof(address), fmt::format("127.0.0.1:{}", port));
  socklen_t size = sizeof(address);
  if (socket &&
      ::getsockname(socket->get(), reinterpret_cast<sockaddr*>(&address),
                    &size) == 0) {
    port = ntohs(address.sin_port);
  }
  return socket;
}

Result<Fd> Accept(const Fd& listener) {
  int fd = -1;
  do {
    fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    return SystemError(errno, "cannot accept gdb's connection");
  }
  // Replies are small and gdb waits for each. Fails on a Unix socket, which
  // does not need it.
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return Fd(fd);
}

Status Serve(int in_fd, int out_fd, Timeline& timeline, ImageFiles& files) {
  return Connection(in_fd, out_fd, timeline, files).Serve();
}

}  // namespace clew::replayer::gdb
