#include "tests/daemon/support.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/check.h"
#include "common/os/exec_arguments.h"
#include "common/os/fd.h"
#include "common/os/lock_file.h"
#include "proto/bundle.pb.h"

namespace clew::daemon::test {

namespace fs = std::filesystem;

Scratch::Scratch() {
  std::string pattern = (fs::temp_directory_path() / "clewd-XXXXXX").string();
  CLEW_CHECK(mkdtemp(pattern.data()) != nullptr, "no folder {}", pattern);
  root_ = pattern;
}

Scratch::~Scratch() { fs::remove_all(root_); }

void WriteText(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

sockaddr_un SocketAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  CLEW_CHECK(path.size() < sizeof(address.sun_path), "{}: too long", path);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

bool Accepts(const std::string& path) {
  const sockaddr_un address = SocketAddress(path);
  const Fd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(client.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)) == 0;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

void MakeBundle(const std::string& folder, int signal, size_t core_bytes) {
  pb::Manifest manifest;
  manifest.set_format_version(1);
  manifest.add_command("/usr/bin/server");
  manifest.mutable_failure()->set_kind(pb::Failure::KIND_SIGNAL);
  manifest.mutable_failure()->set_signal(signal);
  // Elsewhere first: a bundle appears whole.
  const std::string partial = folder + ".making";
  WriteText(partial + "/manifest.pb", manifest.SerializeAsString());
  WriteText(partial + "/core", std::string(core_bytes, 'c'));
  fs::rename(partial, folder);
}

Status FakeWork::Start(const std::string& folder,
                       std::function<void(const JobEnd&)> done) {
  if (fails) {
    return SystemError(EAGAIN, "no process in this test");
  }
  CLEW_CHECK(!running(), "two works at once");
  ++starts;
  folder_ = folder;
  done_ = std::move(done);
  return {};
}

void FakeWork::End(const JobEnd& end) {
  const auto done = std::exchange(done_, nullptr);
  done(end);
}

bool RunUntil(Loop& loop, const std::function<bool()>& done,
              uint64_t limit_ms) {
  const uint64_t end_ms = SystemClock().MonotonicMs() + limit_ms;
  bool ok = false;
  std::function<void()> look = [&] {
    ok = done();
    if (ok || SystemClock().MonotonicMs() > end_ms) {
      loop.Stop();
    } else {
      loop.Post(look);
      usleep(1000);
    }
  };
  loop.Post(look);
  return loop.Run().has_value() && ok;
}

Process::Process(const std::vector<std::string>& arguments,
                 const std::string& output,
                 const std::vector<std::string>& environment, int input) {
  const std::vector<char*> pointers = ExecArguments(arguments);
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (out < 0) {
      _exit(126);
    }
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    if (input >= 0) {
      dup2(input, STDIN_FILENO);
    }
    for (const std::string& variable : environment) {
      putenv(const_cast<char*>(variable.c_str()));
    }
    execv(pointers[0], pointers.data());
    _exit(127);
  }
}

Process::~Process() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
}

void Process::Signal(int signal) const {
  if (process_ > 0) {  // kill(2): -1 would be everybody
    kill(process_, signal);
  }
}

int Process::Wait() {
  if (process_ > 0) {
    waitpid(process_, &status_, 0);
    process_ = -1;
  }
  return status_;
}

bool Process::Ends() {
  return WaitUntil([this] { return !IsRunning(); });
}

void Process::Kill() {
  Signal(SIGKILL);
  Wait();
}

void Process::Stop() const {
  Signal(SIGSTOP);
  siginfo_t info = {};
  CLEW_CHECK(waitid(P_PID, static_cast<id_t>(process_), &info,
                    WSTOPPED | WEXITED | WNOWAIT) == 0 &&
                 info.si_code == CLD_STOPPED,
             "process {} did not stop", process_);
}

bool Process::IsRunning() {
  if (process_ > 0 && waitpid(process_, &status_, WNOHANG) == process_) {
    process_ = -1;
  }
  return process_ > 0;
}

std::string Program(const std::string& name) {
  const char* build = getenv("CLEW_BINARY_DIR");
  return std::string(build == nullptr ? "build" : build) + "/bin/" + name;
}

bool BecomesFree(const std::string& lock) {
  const auto held = TryLockFile(lock, std::chrono::milliseconds(kHangMs));
  return held.has_value() && held->is_open();
}

}  // namespace clew::daemon::test
