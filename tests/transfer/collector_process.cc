#include "tests/transfer/collector_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <random>
#include <sstream>

#include "common/check.h"
#include "common/os/fd.h"
#include "tests/support/loopback.h"
#include "tests/support/read_text.h"
#include "tests/support/wait_until.h"

namespace clew::transfer {
namespace {

// Below those that the kernel gives to connections (ip_local_port_range): one
// of these could have the port while the collector is down, even one that was
// to go there, which is then connected to itself.
constexpr uint16_t kPortMin = 20000;
constexpr uint16_t kPortMax = 32000;
constexpr int kPortsTried = 100;

// Nobody else gets the port as long as this process lives, but for those that
// listen with SO_REUSEADDR, as the collector does: two sockets that both have
// it may be bound to one port where none of them listens yet (socket(7)).
void Hold(Fd bound) {
  const int on = 1;
  CLEW_CHECK(
      setsockopt(bound.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0,
      "SO_REUSEADDR: {}", std::strerror(errno));
  static std::mutex mutex;
  static std::vector<Fd> held;
  const std::lock_guard lock(mutex);
  held.push_back(std::move(bound));
}

}  // namespace

uint16_t FreePort() {
  std::random_device random;
  std::uniform_int_distribution<uint16_t> ports(kPortMin, kPortMax);
  for (int i = 0; i < kPortsTried; ++i) {
    const uint16_t port = ports(random);
    Fd fd = test::TcpSocket();
    if (test::Bind(fd, port)) {
      Hold(std::move(fd));
      return port;
    }
  }
  CLEW_CHECK(false, "no free port from {} to {}", kPortMin, kPortMax);
  return 0;
}

std::string CollectorBinary() { return CLEW_COLLECTOR; }

CollectorProcess::CollectorProcess(const std::string& folder,
                                   const std::vector<std::string>& lines)
    : folder_(folder), port_(FreePort()) {
  std::ofstream config(config_file());
  config << "data = " << data() << "\nlisten = " << address() << "\n";
  if (std::ranges::none_of(lines, [](const std::string& line) {
        return line.starts_with("web = ");
      })) {
    config << "web =\n";
  }
  for (const std::string& line : lines) {
    config << line << "\n";
  }
}

CollectorProcess::~CollectorProcess() { Kill(); }

std::string CollectorProcess::address() const {
  return fmt::format("127.0.0.1:{}", port_);
}

bool CollectorProcess::Start() {
  const std::string binary = CollectorBinary();
  const std::string config = config_file();
  const std::string log_file = folder_ + "/log";
  const size_t said_before = log().size();
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log_fd =
        open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (getppid() != parent || log_fd < 0 || dup2(log_fd, 2) < 0) {
      _exit(127);
    }
    execl(binary.c_str(), binary.c_str(), "--config", config.c_str(), nullptr);
    _exit(127);
  }
  // Not whether the port answers: that may still be a child of the last one.
  const auto is_ready = [&] {
    return log().find("event=ready ", said_before) != std::string::npos;
  };
  if (test::WaitUntil([&] { return is_ready() || !Lives(); }) && running() &&
      is_ready()) {
    return true;
  }
  std::fprintf(stderr, "%s --config %s does not run, wait status %#x:\n%s\n",
               binary.c_str(), config.c_str(),
               static_cast<unsigned>(wait_status_), log().c_str());
  return false;
}

bool CollectorProcess::Lives() {
  CLEW_CHECK(pid_ > 0, "no collector to live");
  if (waitpid(pid_, &wait_status_, WNOHANG) == pid_) {
    pid_ = 0;
  }
  return pid_ > 0;
}

void CollectorProcess::Kill() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
}

int CollectorProcess::Stop() {
  CLEW_CHECK(pid_ > 0, "no collector to stop");
  kill(pid_, SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void CollectorProcess::Signal(int signal) {
  CLEW_CHECK(pid_ > 0, "no collector to signal");
  kill(pid_, signal);
}

std::string CollectorProcess::log() const {
  return test::ReadText(folder_ + "/log");
}

uint64_t CollectorProcess::PeakResidentBytes() const {
  std::ifstream status(fmt::format("/proc/{}/status", pid_));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) {
      return std::stoull(line.substr(6)) * 1024;
    }
  }
  return 0;
}

}  // namespace clew::transfer
