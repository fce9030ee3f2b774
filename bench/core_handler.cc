// What the core dump of a process of 4 GiB, eight pages of it touched, costs:
// the kernel's own, to a file; a pipe that is read and dropped, which is what
// any handler that reads it costs the dying process; and clew-core-handler, to
// a file as the kernel would, and to clewd's spool beside it; and to a program
// that handled core dumps before, which reads and drops them.
//
// Real: the kernel's dump, the handler, the memory that it reads, of a process
// that is stopped after a twin of it has died. Not real: who writes to the
// pipe, page by page and with a page of zeros for each page of a hole, as the
// kernel does (fs/coredump.c, __dump_skip), is this program, from the twin's
// core file. tests/vm has the whole of it.
//
//   bench_core_handler [GIB]
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "common/os/exec_arguments.h"
#include "common/os/fd.h"
#include "common/x86/page.h"
#include "daemon/control/control.h"
#include "daemon/loop/clock.h"

namespace clew::daemon {
namespace {

namespace fs = std::filesystem;

double SecondsOf(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

void TouchSparse(uint64_t bytes) {
  const rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_CORE, &all);
  auto* memory = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  for (uint64_t i = 0; i < 8; ++i) {
    memory[bytes / 8 * i] = 1;
  }
}

void Wait(pid_t process) { waitpid(process, nullptr, 0); }

// A process with such memory, stopped, and the core file of its twin.
class Sparse {
 public:
  explicit Sparse(uint64_t bytes) : process_(fork()) {
    if (process_ == 0) {
      TouchSparse(bytes);
      raise(SIGSTOP);
      const pid_t twin = fork();
      if (twin == 0) {
        std::abort();
      }
      Wait(twin);
      raise(SIGSTOP);
      _exit(0);
    }
    waitpid(process_, nullptr, WUNTRACED);
  }
  ~Sparse() {
    kill(process_, SIGKILL);
    Wait(process_);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  // Lets the twin die.
  void Dump() const {
    kill(process_, SIGCONT);
    waitpid(process_, nullptr, WUNTRACED);
  }
  pid_t process() const { return process_; }

 private:
  pid_t process_;
};

// "core", "core.1234": in the current folder.
std::string FindCore() {
  for (const auto& entry : fs::directory_iterator(".")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("core")) {
      return name;
    }
  }
  return {};
}

// Page by page, as the kernel writes to a pipe.
void Feed(const std::string& core, int to) {
  static constexpr std::array<char, kPageBytes> kZeros = {};
  std::array<char, kPageBytes> page = {};
  const Fd from(open(core.c_str(), O_RDONLY | O_CLOEXEC));
  const off_t size = lseek(from.get(), 0, SEEK_END);
  off_t data = 0;
  for (off_t at = 0; at < size;) {
    if (data <= at) {
      const off_t next = lseek(from.get(), at, SEEK_DATA);
      data = next < 0 ? size : next;
    }
    const bool hole = at + static_cast<off_t>(kPageBytes) <= data;
    const auto part = static_cast<size_t>(
        std::min<off_t>(static_cast<off_t>(kPageBytes), size - at));
    if (!hole && pread(from.get(), page.data(), part, at) < 0) {
      return;
    }
    if (write(to, hole ? kZeros.data() : page.data(), part) < 0) {
      return;
    }
    at += static_cast<off_t>(part);
    data = hole ? data : 0;
  }
}

pid_t Start(const std::vector<std::string>& words, int input) {
  const std::vector<char*> arguments = ExecArguments(words);
  const pid_t process = fork();
  if (process == 0) {
    dup2(input, STDIN_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  return process;
}

double TimeOf(const std::vector<std::string>& reader, const std::string& core) {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return 0;
  }
  Fd input(ends[0]);
  Fd output(ends[1]);
  return SecondsOf([&] {
    const pid_t process = Start(reader, input.get());
    input.Close();
    Feed(core, output.get());
    output.Close();
    Wait(process);
  });
}

std::vector<std::string> HandlerIn(const std::string& root, pid_t process) {
  const std::string pid = std::to_string(process);
  return {CLEW_BENCH_CORE_HANDLER,
          "--root",
          root,
          pid,
          pid,
          pid,
          pid,
          std::to_string(getuid()),
          std::to_string(getgid()),
          "1",
          "6",
          "1700000000",
          "18446744073709551615",
          "host",
          "sparse"};
}

// clewd as far as the handler sees it.
class CoreTaker final : public ControlHandler {
 public:
  explicit CoreTaker(const std::string& root)
      : server_(ControlServer::Open(*loop_, *this,
                                    {.path = root + "/run/clew/clewd.sock"})) {
    thread_ = std::thread([this] { (void)loop_->Run(); });
  }
  ~CoreTaker() override {
    loop_->Post([this] { loop_->Stop(); });
    thread_.join();
  }
  Answer OnRequest(ConnectionId, const Peer&, const Request& request) override {
    Answer answer{.line = OkReply(), .descriptor = {}, .hold = false};
    if (std::holds_alternative<CoreRequest>(request)) {
      answer.line = "{\"ok\":true,\"bytes_max\":4294967296}\n";
      answer.descriptor = Fd(open("spooled", O_WRONLY | O_CREAT, 0600));
      answer.hold = true;
    }
    return answer;
  }
  void OnClosed(ConnectionId) override {}

 private:
  std::unique_ptr<Loop> loop_ = *Loop::Make(SystemClock());
  Result<std::unique_ptr<ControlServer>> server_;
  std::thread thread_;
};

void Print(const std::string& what, double seconds, const std::string& file) {
  struct stat info = {};
  if (!file.empty() && stat(file.c_str(), &info) == 0) {
    fmt::print("{:<38} {:8.3f} s {:8} KiB on disk {:8} MiB long\n", what,
               seconds, info.st_blocks / 2, info.st_size >> 20);
  } else {
    fmt::print("{:<38} {:8.3f} s\n", what, seconds);
  }
}

int Main(uint64_t gib) {
  char name[] = "/tmp/clew-bench-core-XXXXXX";
  const std::string root = mkdtemp(name);
  fs::current_path(root);
  fs::create_directories("var/lib/clew");
  fs::create_directories("run/clew");
  std::ofstream("var/lib/clew/core_pattern.before") << root << "/passed\n";
  signal(SIGPIPE, SIG_IGN);
  const Sparse sparse(gib << 30);
  const double kernel = SecondsOf([&] { sparse.Dump(); });
  const std::string core = FindCore();
  if (core.empty()) {
    fmt::print(stderr,
               "the kernel left no core file here: kernel.core_pattern must be "
               "a file's name, as \"core\"\n");
    fs::remove_all(root);
    return 77;
  }
  Print("kernel, to a file", kernel, core);
  const double pipe =
      TimeOf({"dd", "of=/dev/null", "bs=64k", "status=none"}, core);
  Print("a pipe, read and dropped", pipe, "");
  const std::vector<std::string> handler = HandlerIn(root, sparse.process());
  const double file = TimeOf(handler, core);
  Print("handler, to a file", file, "passed");
  {
    const CoreTaker spool(root);
    const double both = TimeOf(handler, core);
    Print("handler, to a file and the spool", both, "spooled");
    fmt::print("handler / kernel: {:.2f} without, {:.2f} with the spool\n",
               file / kernel, both / kernel);
    std::ofstream("var/lib/clew/core_pattern.before")
        << "|/usr/bin/dd of=/dev/null bs=64k status=none\n";
    const double program = TimeOf(handler, core);
    Print("handler, to a program and the spool", program, "spooled");
    fmt::print("handler / pipe, with a program: {:.2f}\n", program / pipe);
  }
  fs::current_path("/");
  fs::remove_all(root);
  return 0;
}

}  // namespace
}  // namespace clew::daemon

int main(int argc, char** argv) {
  return clew::daemon::Main(argc > 1 ? strtoull(argv[1], nullptr, 10) : 4);
}
