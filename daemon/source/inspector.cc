#include "daemon/source/inspector.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "daemon/source/inspect.h"
#include "daemon/source/killed_children.h"

namespace clew::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Outlives every source, as the children do.
KilledChildren& Killed() {
  static KilledChildren killed;
  return killed;
}

// posix_spawn(3)'s two objects.
class SpawnSetUp {
 public:
  SpawnSetUp(int input, int first_answer) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null",
                                     O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, first_answer, kFirstAnswerFd);
    posix_spawn_file_actions_addclosefrom_np(&actions_, kFirstAnswerFd + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSetUp() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetUp(const SpawnSetUp&) = delete;
  SpawnSetUp& operator=(const SpawnSetUp&) = delete;
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

int MsUntil(Inspector::Time end) {
  const auto left =
      std::chrono::ceil<milliseconds>(end - steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT32_MAX));
}

pb::InspectRequest RequestOf(const recorder::MappedImage& image) {
  pb::InspectRequest request;
  pb::ImageRequest& to = *request.mutable_image();
  to.set_path(image.path);
  to.set_build_id(image.build_id.data(), image.build_id.size());
  return request;
}

}  // namespace

size_t Inspector::LeftBehind(uid_t user) {
  return Killed().LeftBehind(
      [&](const auto& child) { return child.user == user; });
}

bool Inspector::IsLeftBehind(int32_t looked_at) {
  return Killed().LeftBehind([&](const auto& child) {
    return child.looked_at == looked_at;
  }) > 0;
}

Result<std::unique_ptr<Inspector>> Inspector::Start(uid_t user) {
  const size_t left = LeftBehind(user);
  if (left >= (user == 0 ? kLeftBehindOfRootMax : kLeftBehindMax) ||
      Killed().LeftBehind([](const auto&) { return true; }) >=
          kLeftBehindOfAllMax) {
    return LimitReached(
        "processes of user {} are not looked at: {} looks at them wait for a "
        "file system, or for memory, that does not answer",
        user, left);
  }
  if (const size_t killed = Killed().NotEnded(); killed >= kNotEndedMax) {
    return LimitReached(
        "no process is looked at: {} processes that did so were killed and "
        "have "
        "not ended yet",
        killed);
  }
  std::unique_ptr<Inspector> inspector(new Inspector(user));
  CLEW_RETURN_IF_ERROR(inspector->Spawn());
  return inspector;
}

Status Inspector::Spawn() {
  std::array<int, 2> sockets = {};
  std::array<int, 2> pipe = {};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return SystemError(errno, "cannot make a socket");
  }
  socket_ = Fd(sockets[0]);
  const Fd theirs(sockets[1]);
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return SystemError(errno, "cannot make a pipe");
  }
  first_answer_ = Fd(pipe[0]);
  // Above all numbers that the child gets.
  const Fd answered(fcntl(pipe[1], F_DUPFD_CLOEXEC, kFirstAnswerFd + 1));
  close(pipe[1]);
  const Fd input(fcntl(theirs.get(), F_DUPFD_CLOEXEC, kFirstAnswerFd + 1));
  const SpawnSetUp set_up(input.get(), answered.get());
  // Our own program, also where a package has put another in its place.
  const char* program = "/proc/self/exe";
  std::array<char*, 3> words = {const_cast<char*>("clewd"),
                                const_cast<char*>("inspect"), nullptr};
  const int error = posix_spawn(&process_, program, set_up.actions(),
                                set_up.attributes(), words.data(), environ);
  if (error != 0) {
    process_ = -1;
    return SystemError(error, "cannot start clewd inspect");
  }
  return {};
}

Inspector::~Inspector() { Abandon(); }

void Inspector::Abandon() {
  socket_.Close();
  if (process_ > 0) {
    kill(process_, SIGKILL);
    Killed().Add({.process = std::exchange(process_, -1),
                  .user = user_,
                  .looked_at = looked_at_});
  }
}

Status Inspector::BeginLook(int32_t process, bool hold) {
  looked_at_ = process;
  pb::InspectRequest request;
  request.mutable_look()->set_process(process);
  request.mutable_look()->set_hold(hold);
  return Send(request);
}

Status Inspector::Send(const pb::InspectRequest& request) {
  const std::string body = request.SerializeAsString();
  const auto size = static_cast<uint32_t>(body.size());
  const std::string bytes =
      std::string(reinterpret_cast<const char*>(&size), sizeof size) + body;
  // It has read all requests before, so there is room.
  if (is_over() ||
      send(socket_.get(), bytes.data(), bytes.size(),
           MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(bytes.size())) {
    return SystemError(EPIPE, "cannot ask clewd inspect");
  }
  return {};
}

Status Inspector::ReceiveBytes(char* out, size_t size, Time end) {
  while (size > 0) {
    pollfd ready = {socket_.get(), POLLIN, 0};
    const int polled = poll(&ready, 1, MsUntil(end));
    if (polled < 0 && errno == EINTR) {
      continue;
    }
    if (polled == 0) {
      return LimitReached("there was no answer in time");
    }
    const ssize_t count = recv(socket_.get(), out, size, MSG_DONTWAIT);
    if (count <= 0) {
      return SystemError(ECHILD, "clewd inspect has ended");
    }
    out += count;
    size -= static_cast<size_t>(count);
  }
  return {};
}

Result<pb::InspectReply> Inspector::Receive(Time end) {
  uint32_t size = 0;
  std::string bytes;
  pb::InspectReply reply;
  const auto receive = [&]() -> Status {
    CLEW_RETURN_IF_ERROR(
        ReceiveBytes(reinterpret_cast<char*>(&size), sizeof size, end));
    if (size > kInspectBytesMax) {
      return LimitReached("an answer of {} bytes, at most {} are taken", size,
                          kInspectBytesMax);
    }
    bytes.resize(size);
    return ReceiveBytes(bytes.data(), bytes.size(), end);
  };
  Status received =
      is_over() ? SystemError(ECHILD, "clewd inspect has ended") : receive();
  if (received && !reply.ParseFromString(bytes)) {
    received = CorruptInput("{} bytes of clewd inspect are no answer", size);
  }
  if (!received) {
    Abandon();
    return std::unexpected(received.error());
  }
  return reply;
}

Result<pb::InspectReply> Inspector::Ask(const pb::InspectRequest& request,
                                        Time end) {
  CLEW_RETURN_IF_ERROR(Send(request));
  return Receive(end);
}

Status InspectedImages::Replace() {
  if (left_ == 0) {
    return LimitReached("its process, or files before it, did not answer");
  }
  --left_;
  CLEW_ASSIGN_OR_RETURN(started, Inspector::Start(user_));
  inspector_ = std::move(started);
  return {};
}

Result<pb::InspectReply> InspectedImages::Ask(
    const pb::InspectRequest& request) {
  if (inspector_ == nullptr || inspector_->is_over()) {
    CLEW_RETURN_IF_ERROR(Replace());
  }
  return inspector_->Ask(request, steady_clock::now() + image_time_);
}

Result<uint64_t> InspectedImages::SizeOf(const recorder::MappedImage& image) {
  CLEW_ASSIGN_OR_RETURN(reply, Ask(RequestOf(image)));
  if (!reply.why().empty()) {
    return InvalidArgument("{}", reply.why());
  }
  return reply.size_bytes();
}

Result<std::string> InspectedImages::CopyTo(const recorder::MappedImage& image,
                                            uint64_t bytes_max,
                                            const std::string& to) {
  pb::InspectRequest request = RequestOf(image);
  request.mutable_image()->set_copy_to(to);
  request.mutable_image()->set_bytes_max(bytes_max);
  const auto reply = Ask(request);
  return reply ? reply->why() : reply.error().message;
}

}  // namespace clew::daemon
