// clew-supervise: what tools/demo-service uses of systemd where it cannot start
// one: runs one service of Type=notify, with a watchdog, and ends it.
//
//   clew-supervise READY_SECONDS WATCHDOG_SECONDS COMMAND [ARGUMENT...]
//
// Prints "ready" when the service says READY=1, and each STATUS=. SIGTERM is
// handed on; what has not ended kStopS later is killed. Exit status: 0 if the
// service ended with 0 after SIGTERM; 1 with a line on standard error if it was
// not ready in time, fed the watchdog late, or ended by itself.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kStopS = 20;
constexpr int kSecondsMax = 3600;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "clew-supervise: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

struct Options {
  int ready_s = 0;
  int watchdog_s = 0;
  char** command = nullptr;
};

int SecondsOf(const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 1 || value > kSecondsMax) {
    std::fprintf(stderr, "clew-supervise: %s: wanted seconds, 1 to %d\n", text,
                 kSecondsMax);
    std::exit(2);
  }
  return static_cast<int>(value);
}

Options Parse(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: clew-supervise READY_SECONDS WATCHDOG_SECONDS "
                 "COMMAND [ARGUMENT...]\n");
    std::exit(2);
  }
  return {SecondsOf(argv[1]), SecondsOf(argv[2]), argv + 3};
}

// An abstract socket that the kernel names, and that name for $NOTIFY_SOCKET.
int OpenNotifySocket(std::string* name) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof(address.sun_family);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, generic, size) != 0) {
    Fail("notify socket");
  }
  size = sizeof(address);
  if (getsockname(fd, generic, &size) != 0) {
    Fail("notify socket");
  }
  const size_t length = size - offsetof(sockaddr_un, sun_path);
  *name = "@" + std::string(address.sun_path + 1, length - 1);
  return fd;
}

int OpenSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) {
    sigaddset(&set, signal);
  }
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int fd = signalfd(-1, &set, SFD_CLOEXEC);
  if (fd < 0) {
    Fail("signalfd");
  }
  return fd;
}

pid_t Start(const Options& options, const std::string& socket_name) {
  const pid_t child = fork();
  if (child < 0) {
    Fail("fork");
  }
  if (child > 0) {
    return child;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setenv("NOTIFY_SOCKET", socket_name.c_str(), 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  setenv("WATCHDOG_USEC",
         std::to_string(int64_t{options.watchdog_s} * 1'000'000).c_str(), 1);
  execv(options.command[0], options.command);
  Fail(options.command[0]);
}

class Supervisor {
 public:
  Supervisor(const Options& options, pid_t child, int notify, int signals)
      : options_(options), child_(child), notify_(notify), signals_(signals) {}

  int Run() {
    DeadlineIn(options_.ready_s);
    while (!ended_) {
      Wait();
    }
    return stopping_ && !killed_ && status_ == 0 ? 0 : Ended();
  }

 private:
  void DeadlineIn(int seconds) {
    deadline_ = Clock::now() + std::chrono::seconds(seconds);
  }

  void Wait() {
    std::array<pollfd, 2> fds = {{{notify_, POLLIN, 0}, {signals_, POLLIN, 0}}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    const int timeout = static_cast<int>(std::max<int64_t>(left.count(), 0));
    const int ready = poll(fds.data(), fds.size(), timeout);
    if (ready < 0 && errno != EINTR) {
      Fail("poll");
    }
    if (ready == 0) {
      Late();
    }
    if (ready > 0 && fds[0].revents != 0) {
      ReadMessage();
    }
    if (ready > 0 && fds[1].revents != 0) {
      ReadSignal();
    }
  }

  void Late() {
    const char* what = "not ready";
    if (ready_) {
      what = "watchdog not fed";
    }
    if (stopping_) {
      what = "not stopped";
    }
    std::fprintf(stderr, "clew-supervise: %s: %s in time, killed\n",
                 options_.command[0], what);
    killed_ = true;
    kill(child_, SIGKILL);
    DeadlineIn(kSecondsMax);
  }

  void ReadMessage() {
    std::array<char, 4096> buffer;
    const ssize_t size = recv(notify_, buffer.data(), buffer.size(), 0);
    if (size <= 0) {
      return;
    }
    std::string_view text(buffer.data(), static_cast<size_t>(size));
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      Take(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  void Take(std::string_view line) {
    if (line == "READY=1" && !ready_) {
      ready_ = true;
      Print("ready");
    }
    if (line.starts_with("STATUS=")) {
      Print(line);
    }
    if (ready_ && !stopping_ && (line == "READY=1" || line == "WATCHDOG=1")) {
      DeadlineIn(options_.watchdog_s);
    }
  }

  static void Print(std::string_view line) {
    std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
    std::fflush(stdout);
  }

  void ReadSignal() {
    signalfd_siginfo info;
    if (read(signals_, &info, sizeof(info)) != sizeof(info)) {
      return;
    }
    if (info.ssi_signo != SIGCHLD) {
      stopping_ = true;
      kill(child_, SIGTERM);
      DeadlineIn(kStopS);
    } else if (waitpid(child_, &status_, WNOHANG) == child_) {
      ended_ = true;
    }
  }

  int Ended() const {
    if (!killed_) {
      std::fprintf(
          stderr, "clew-supervise: %s ended%s: %s %d\n", options_.command[0],
          stopping_ ? "" : " by itself",
          WIFSIGNALED(status_) ? "signal" : "exit status",
          WIFSIGNALED(status_) ? WTERMSIG(status_) : WEXITSTATUS(status_));
    }
    return 1;
  }

  const Options& options_;
  const pid_t child_;
  const int notify_;
  const int signals_;
  Clock::time_point deadline_;
  bool ready_ = false;
  bool stopping_ = false;
  bool killed_ = false;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  std::string socket_name;
  const int notify = OpenNotifySocket(&socket_name);
  const int signals = OpenSignals();
  const pid_t child = Start(options, socket_name);
  return Supervisor(options, child, notify, signals).Run();
}
