#include "daemon/control/control.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace clew::daemon {
namespace {

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return InvalidArgument("{:?} is too long for a socket, at most {} bytes",
                           path, sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<Fd> Connect(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(address, AddressOf(path));
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0 ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return SystemError(errno, fmt::format("no clewd at {:?}", path));
  }
  return fd;
}

std::optional<gid_t> GroupOf(const std::string& name) {
  const group* found = getgrnam(name.c_str());
  return found == nullptr ? std::nullopt : std::optional(found->gr_gid);
}

// The groups that the kernel knows the peer to be in, its own first.
std::vector<gid_t> PeerGroups(int fd, gid_t own) {
  std::vector<gid_t> groups(256);
  auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0) {
    size = 0;  // more groups than anybody has
  }
  groups.resize(size / sizeof(gid_t));
  groups.insert(groups.begin(), own);
  return groups;
}

Result<Peer> PeerOf(int fd) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return SystemError(errno, "cannot ask who connects");
  }
  return Peer{credentials.pid, credentials.uid,
              PeerGroups(fd, credentials.gid)};
}

// Sends what there is room for, the descriptor with it; -1 and errno as send.
ssize_t SendSome(int fd, const std::string& text, int descriptor) {
  iovec part = {const_cast<char*>(text.data()), text.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::Open(
    Loop& loop, ControlHandler& handler, ControlOptions options) {
  std::unique_ptr<ControlServer> server(
      new ControlServer(loop, handler, std::move(options)));
  CLEW_RETURN_IF_ERROR(server->Listen());
  return server;
}

Status ControlServer::Listen() {
  CLEW_ASSIGN_OR_RETURN(address, AddressOf(options_.path));
  std::error_code error;
  std::filesystem::create_directories(
      std::filesystem::path(options_.path).parent_path(), error);
  if (Connect(options_.path).has_value()) {
    return InvalidArgument("a clewd is listening at {:?}", options_.path);
  }
  unlink(options_.path.c_str());
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const mode_t before = umask(0177);  // nobody else until chmod
  const bool bound =
      fd.get() >= 0 && bind(fd.get(), reinterpret_cast<sockaddr*>(&address),
                            sizeof(address)) == 0;
  umask(before);
  if (!bound || listen(fd.get(), kClientsMax) != 0) {
    return SystemError(errno,
                       fmt::format("cannot listen at {:?}", options_.path));
  }
  group_ = GroupOf(options_.group);
  if (group_) {
    // Without the right to do so, root alone may connect.
    (void)!chown(options_.path.c_str(), static_cast<uid_t>(-1), *group_);
    (void)chmod(options_.path.c_str(), 0660);
  }
  listener_ = std::move(fd);
  return loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
}

ControlServer::~ControlServer() {
  while (!clients_.empty()) {
    Close(clients_.begin()->first);
  }
  if (listener_.get() >= 0) {
    loop_.Forget(listener_.get());
    unlink(options_.path.c_str());
  }
}

bool ControlServer::MayTalk(const Peer& peer) const {
  return peer.user == 0 || peer.user == geteuid() ||
         (group_ &&
          std::ranges::find(peer.groups, *group_) != peer.groups.end());
}

void ControlServer::Accept() {
  Fd fd(
      accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.get() < 0) {
    return;  // it went away again
  }
  const auto peer = PeerOf(fd.get());
  const char* why = nullptr;
  if (!peer || !MayTalk(*peer)) {
    why = "clewd talks to root and members of the group clew only";
  } else if (clients_.size() >= kClientsMax) {
    why = "too many clients at once, try again";
  }
  if (why != nullptr) {
    ++refused_;
    const std::string line = ErrorReply({ErrorCode::kUnsupported, why});
    (void)SendSome(fd.get(), line, -1);  // it is closed in any case
    return;
  }
  const uint64_t id = ++last_id_;
  Client& client = clients_[id];
  client.fd = std::move(fd);
  client.peer = *peer;
  Patience(id, client, false);
  if (!loop_.Watch(client.fd.get(), EPOLLIN,
                   [this, id](uint32_t events) { Ready(id, events); })) {
    Close(id);
  }
}

void ControlServer::Patience(uint64_t id, Client& client, bool hold) {
  loop_.Cancel(std::exchange(client.timer, 0));
  if (!hold) {
    client.timer = loop_.After(options_.patience_ms, [this, id] { Close(id); });
  }
}

void ControlServer::Ready(uint64_t id, uint32_t events) {
  const auto at = clients_.find(id);
  if (at == clients_.end()) {
    return;
  }
  Client& client = at->second;
  bool alive = true;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !client.closing) {
    alive = Read(client);
    TakeLines(id, client);
  }
  alive = Write(client) && alive;
  if (!alive || (client.closing && client.output.empty())) {
    Close(id);
    return;
  }
  const uint32_t wanted =
      (client.closing ? 0u : EPOLLIN) | (client.output.empty() ? 0u : EPOLLOUT);
  if (!loop_.Watch(client.fd.get(), wanted,
                   [this, id](uint32_t ready) { Ready(id, ready); })) {
    Close(id);
  }
}

bool ControlServer::Read(Client& client) {
  std::array<char, kRequestBytesMax> bytes = {};
  const ssize_t count = recv(client.fd.get(), bytes.data(), bytes.size(), 0);
  if (count < 0) {
    return errno == EAGAIN || errno == EINTR;
  }
  client.input.append(bytes.data(), static_cast<size_t>(count));
  return count > 0;
}

void ControlServer::TakeLines(uint64_t id, Client& client) {
  size_t newline = 0;
  while (!client.closing &&
         (newline = client.input.find('\n')) != std::string::npos) {
    const std::string line = client.input.substr(0, newline);
    client.input.erase(0, newline + 1);
    const auto request = ParseRequest(line);
    if (!request) {
      Reply(id, client,
            {.line = ErrorReply(request.error()), .descriptor = {}});
      client.closing = true;
      return;
    }
    Reply(id, client, handler_.OnRequest(id, client.peer, *request));
    // A client that sends on without reading its replies.
    client.closing = client.closing || client.output.size() > kReplyBytesMax;
  }
  if (client.input.size() >= kRequestBytesMax) {
    Reply(id, client,
          {.line = ErrorReply({ErrorCode::kInvalidArgument,
                               fmt::format("a request longer than {} bytes",
                                           kRequestBytesMax)}),
           .descriptor = {}});
    client.closing = true;
  }
}

void ControlServer::Reply(uint64_t id, Client& client, Answer answer) {
  client.output += answer.line;
  if (answer.descriptor.get() >= 0) {
    client.descriptor = std::move(answer.descriptor);
  }
  Patience(id, client, answer.hold);
}

void ControlServer::Send(ControlHandler::ConnectionId connection,
                         Answer answer) {
  const auto at = clients_.find(connection);
  if (at != clients_.end()) {
    Reply(connection, at->second, std::move(answer));
    Ready(connection, 0);
  }
}

bool ControlServer::Write(Client& client) {
  while (!client.output.empty()) {
    const ssize_t sent =
        SendSome(client.fd.get(), client.output, client.descriptor.get());
    if (sent < 0) {
      return errno == EAGAIN || errno == EINTR;
    }
    client.descriptor.Close();
    client.output.erase(0, static_cast<size_t>(sent));
  }
  return true;
}

void ControlServer::Close(uint64_t id) {
  const auto at = clients_.find(id);
  if (at == clients_.end()) {
    return;
  }
  loop_.Cancel(at->second.timer);
  loop_.Forget(at->second.fd.get());
  clients_.erase(at);
  handler_.OnClosed(id);
}

Result<std::string> Ask(const std::string& socket, const Request& request,
                        uint64_t wait_ms) {
  auto fd = Connect(socket);
  if (!fd) {
    Error error = fd.error();
    error.message += error.sys_errno == EACCES
                         ? "; be root or a member of the group clew"
                         : "; is it running? systemctl status clewd";
    return std::unexpected(error);
  }
  const timeval wait = {static_cast<time_t>(wait_ms / 1000),
                        static_cast<suseconds_t>(wait_ms % 1000 * 1000)};
  setsockopt(fd->get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  setsockopt(fd->get(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  const std::string line = FormatRequest(request);
  if (send(fd->get(), line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    return SystemError(errno, "cannot send the request to clewd");
  }
  std::string reply;
  std::array<char, 4096> bytes = {};
  while (!reply.ends_with('\n') && reply.size() <= kReplyBytesMax) {
    const ssize_t count = recv(fd->get(), bytes.data(), bytes.size(), 0);
    if (count < 0) {
      return SystemError(errno, "clewd does not answer");
    }
    if (count == 0) {
      return CorruptInput("clewd ended the connection without an answer");
    }
    reply.append(bytes.data(), static_cast<size_t>(count));
  }
  return ParseReply(std::move(reply));
}

}  // namespace clew::daemon
