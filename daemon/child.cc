#include "daemon/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/exec_arguments.h"
#include "common/sanitizer.h"

namespace clew::daemon {
namespace {

constexpr int kCannotRun = 127;

struct Pipe {
  Fd read_end;
  Fd write_end;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return SystemError(errno, "cannot make a pipe");
  }
  Pipe made{Fd(ends[0]), Fd(ends[1])};
  if (fcntl(made.read_end.get(), F_SETFL, O_NONBLOCK) != 0) {
    return SystemError(errno, "cannot set up a pipe");
  }
  return made;
}

void Limit(__rlimit_resource resource, uint64_t most) {
  if (most > 0) {
    const rlimit limit = {most, most};
    setrlimit(resource, &limit);
  }
}

// CAP_SYS_ADMIN is for opening perf events alone (clewd.service), and those who
// read bundles or talk to the collector do not. Under no_new_privs an execve
// permits root's programs nothing that was not permitted before it
// (security/commoncap.c, cap_bprm_creds_from_file). Async-signal-safe.
bool DropAdministration() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets = {};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(SYS_capget, &header, sets.data()) != 0) {
    return false;
  }
  auto& low = sets[CAP_TO_INDEX(CAP_SYS_ADMIN)];
  low.effective &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
  low.permitted &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
  low.inheritable &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
  return syscall(SYS_capset, &header, sets.data()) == 0;
}

// Says on standard error why there is no program to become.
void SayCannotRun(const char* program) {
  const char* text = strerrordesc_np(errno);
  (void)!write(STDERR_FILENO, "cannot run ", 11);
  (void)!write(STDERR_FILENO, program, strlen(program));
  (void)!write(STDERR_FILENO, ": ", 2);
  (void)!write(STDERR_FILENO, text, strlen(text));
  (void)!write(STDERR_FILENO, "\n", 1);
}

// Between fork and exec, so async-signal-safe calls only.
[[noreturn]] void Become(const std::vector<char*>& arguments,
                         const ChildLimits& limits, int output, int errors,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(kCannotRun);  // it is dead already
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);
  const int input = open("/dev/null", O_RDONLY);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  const rlimit no_core = {};
  setrlimit(RLIMIT_CORE, &no_core);
  // A program with AddressSanitizer could not even start.
  Limit(RLIMIT_AS, kAddressSanitizer ? 0 : limits.memory_bytes);
  Limit(RLIMIT_CPU, limits.cpu_s);
  if (DropAdministration()) {
    execv(arguments[0], arguments.data());
  }
  SayCannotRun(arguments[0]);
  _exit(kCannotRun);
}

// Appends what can be read now; false once nothing will come any more.
bool ReadSome(int fd, std::string* text) {
  std::array<char, 4096> bytes = {};
  const ssize_t count = read(fd, bytes.data(), bytes.size());
  if (count < 0) {
    return errno == EAGAIN || errno == EINTR;
  }
  text->append(bytes.data(), static_cast<size_t>(count));
  return count > 0;
}

}  // namespace

std::string ChildEnd::Why() const {
  if (timed_out) {
    return "took too long and was ended";
  }
  std::string_view text = errors;
  while (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  const size_t newline = text.rfind('\n');
  if (newline != std::string_view::npos) {
    text.remove_prefix(newline + 1);
  }
  if (!text.empty()) {
    return std::string(text);
  }
  return exit_status > 128
             ? fmt::format("signal {} ended it", exit_status - 128)
             : fmt::format("exit status {}", exit_status);
}

Result<std::unique_ptr<Child>> Child::Start(
    Loop& loop, const std::vector<std::string>& arguments,
    const ChildLimits& limits, std::function<void(const ChildEnd&)> done) {
  std::unique_ptr<Child> child(new Child(loop));
  CLEW_RETURN_IF_ERROR(child->Begin(arguments, limits));
  child->done_ = std::move(done);
  return child;
}

Status Child::Begin(const std::vector<std::string>& arguments,
                    const ChildLimits& limits) {
  CLEW_ASSIGN_OR_RETURN(output, MakePipe());
  CLEW_ASSIGN_OR_RETURN(errors, MakePipe());
  const std::vector<char*> pointers = ExecArguments(arguments);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) {
    return SystemError(errno, "cannot start a process");
  }
  if (process_ == 0) {
    Become(pointers, limits, output.write_end.get(), errors.write_end.get(),
           parent);
  }
  handle_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, process_, 0)));
  if (handle_.get() < 0) {
    return SystemError(errno, "cannot watch a process");
  }
  output_ = std::move(output.read_end);
  errors_ = std::move(errors.read_end);
  CLEW_RETURN_IF_ERROR(
      loop_.Watch(output_.get(), EPOLLIN, [this](uint32_t) { ReadOutput(); }));
  CLEW_RETURN_IF_ERROR(
      loop_.Watch(errors_.get(), EPOLLIN, [this](uint32_t) { ReadErrors(); }));
  CLEW_RETURN_IF_ERROR(
      loop_.Watch(handle_.get(), EPOLLIN, [this](uint32_t) { Ended(); }));
  if (limits.time_ms > 0) {
    timer_ = loop_.After(limits.time_ms, [this] {
      end_.timed_out = true;
      kill(-process_, SIGKILL);
      kill(process_, SIGKILL);
    });
  }
  return {};
}

void Child::ReadOutput() {
  if (!ReadSome(output_.get(), &end_.output)) {
    loop_.Forget(output_.get());
    output_.Close();
  }
  if (end_.output.size() > kOutputMax) {
    end_.output.resize(kOutputMax);
  }
}

void Child::ReadErrors() {
  if (!ReadSome(errors_.get(), &end_.errors)) {
    loop_.Forget(errors_.get());
    errors_.Close();
  }
  if (end_.errors.size() > kErrorsMax) {
    end_.errors.erase(0, end_.errors.size() - kErrorsMax);
  }
}

void Child::Ended() {
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) != process_) {
    return;
  }
  process_ = -1;
  end_.exit_status =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  loop_.Cancel(std::exchange(timer_, 0));
  loop_.Forget(handle_.get());
  // What it wrote last; a grandchild may hold the pipes open for ever. Bounded
  // by what pipes hold (pipe(7): 64 KiB).
  for (int i = 0; i < 17 && output_.get() >= 0; ++i) {
    ReadOutput();
  }
  for (int i = 0; i < 17 && errors_.get() >= 0; ++i) {
    ReadErrors();
  }
  const auto done = std::move(done_);
  const ChildEnd end = std::move(end_);
  done(end);  // may destroy *this
}

Child::~Child() {
  loop_.Cancel(timer_);
  for (const Fd* fd : {&handle_, &output_, &errors_}) {
    if (fd->get() >= 0) {
      loop_.Forget(fd->get());
    }
  }
  if (process_ > 0) {
    kill(-process_, SIGKILL);
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
}

}  // namespace clew::daemon
