#include "daemon/loop/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
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

#include "common/os/child_process.h"
#include "common/os/confinement.h"
#include "common/os/exec_arguments.h"
#include "common/sanitizer.h"

namespace clew::daemon {
namespace {

constexpr int kCannotRun = 127;

Result<Pipe> MakeOutput() {
  CLEW_ASSIGN_OR_RETURN(made, MakePipe());
  if (fcntl(made.read_end.get(), F_SETFL, O_NONBLOCK) != 0) {
    return SystemError(errno, "cannot set up a pipe");
  }
  return std::move(made);
}

void Limit(__rlimit_resource resource, uint64_t most) {
  if (most > 0) {
    (void)SetLimit(resource, most, most);
  }
}

void Say(const char* text) { (void)!write(STDERR_FILENO, text, strlen(text)); }

// Says on standard error at which step there was no program to become.
[[noreturn]] void CannotRun(const char* program, const char* step) {
  const char* text = strerrordesc_np(errno);
  for (const char* part : {"cannot run ", program, " (", step, "): ", text}) {
    Say(part);
  }
  Say("\n");
  _exit(kCannotRun);
}

// What a child needs, made before the fork.
struct Launch {
  std::vector<char*> arguments;
  std::vector<char*> environment;  // of a cell
  const ChildLimits& limits;
  const ChildCell* cell;           // nullptr: none
  const Confinement* confinement;  // of the cell; nullptr: none
  int input;
  int output;
  int errors;
  pid_t parent;
};

// Between fork and exec, so async-signal-safe calls only.
void DieWithoutParent(pid_t parent) {
  if (!DieWithParent(parent)) {
    _exit(kCannotRun);
  }
}

bool BecomeUser(const ChildCell& cell) {
  return geteuid() != 0 ||
         (setgroups(0, nullptr) == 0 &&
          setresgid(cell.group, cell.group, cell.group) == 0 &&
          setresuid(cell.user, cell.user, cell.user) == 0);
}

void EnterCell(const Launch& launch) {
  const char* program = launch.arguments[0];
  if (chdir(launch.cell->folder.c_str()) != 0) {
    CannotRun(program, "current folder");
  }
  if (!BecomeUser(*launch.cell)) {
    CannotRun(program, "other user; needs CAP_SETUID and CAP_SETGID");
  }
  DieWithoutParent(launch.parent);  // prctl(2): forgotten with the user
  if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) !=
      0) {
    CannotRun(program, "descriptors");
  }
  if (launch.confinement == nullptr) {
    return;
  }
  errno = launch.confinement->Enter();
  if (errno != 0) {
    CannotRun(program, "confinement");
  }
}

void SetUp(const Launch& launch) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);
  dup2(launch.input, STDIN_FILENO);
  dup2(launch.output, STDOUT_FILENO);
  dup2(launch.errors, STDERR_FILENO);
  (void)SetLimit(RLIMIT_CORE, 0, 0);
  // A program with AddressSanitizer could not even start.
  Limit(RLIMIT_AS, kAddressSanitizer ? 0 : launch.limits.memory_bytes);
  Limit(RLIMIT_CPU, launch.limits.cpu_s);
}

[[noreturn]] void Become(const Launch& launch) {
  DieWithoutParent(launch.parent);
  SetUp(launch);
  const char* program = launch.arguments[0];
  if (launch.cell != nullptr) {
    EnterCell(launch);
    execve(program, launch.arguments.data(), launch.environment.data());
  } else if (DropAdministration()) {
    execv(program, launch.arguments.data());
  }
  CannotRun(program, "exec");
}

Result<Fd> OpenInput(const std::optional<ChildCell>& cell) {
  const std::string path =
      cell && !cell->input.empty() ? cell->input : "/dev/null";
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    return SystemError(errno, fmt::format("cannot open {:?}", path));
  }
  return fd;
}

// nullopt: none is wanted, or the program would not start in it: one with
// AddressSanitizer reads /proc and traces itself.
Result<std::optional<Confinement>> MakeConfinement(
    const std::string& program, const std::optional<ChildCell>& cell) {
  std::optional<Confinement> made;
  if (cell && !kAddressSanitizer) {
    CLEW_ASSIGN_OR_RETURN(
        confinement,
        Confinement::Make(
            {.program = program, .folder = cell->folder, .readable = {}}));
    made.emplace(std::move(confinement));
  }
  return made;
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

// CAP_SYS_ADMIN is for opening perf events alone (clewd.service), and those who
// read bundles or talk to the collector do not. Under no_new_privs an execve
// permits root's programs nothing that was not permitted before it
// (security/commoncap.c, cap_bprm_creds_from_file).
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
    const ChildLimits& limits, std::function<void(const ChildEnd&)> done,
    const std::optional<ChildCell>& cell) {
  std::unique_ptr<Child> child(new Child(loop));
  CLEW_RETURN_IF_ERROR(child->Begin(arguments, limits, cell));
  child->done_ = std::move(done);
  return child;
}

Status Child::Begin(const std::vector<std::string>& arguments,
                    const ChildLimits& limits,
                    const std::optional<ChildCell>& cell) {
  CLEW_ASSIGN_OR_RETURN(input, OpenInput(cell));
  CLEW_ASSIGN_OR_RETURN(output, MakeOutput());
  CLEW_ASSIGN_OR_RETURN(errors, MakeOutput());
  CLEW_ASSIGN_OR_RETURN(confinement, MakeConfinement(arguments[0], cell));
  const std::vector<std::string> environment = {"PATH=/usr/bin:/bin",
                                                "LC_ALL=C.UTF-8", "TMPDIR=."};
  const Launch launch = {.arguments = ExecArguments(arguments),
                         .environment = ExecArguments(environment),
                         .limits = limits,
                         .cell = cell ? &*cell : nullptr,
                         .confinement = confinement ? &*confinement : nullptr,
                         .input = input.get(),
                         .output = output.write_end.get(),
                         .errors = errors.write_end.get(),
                         .parent = getpid()};
  process_ = fork();
  if (process_ < 0) {
    return SystemError(errno, "cannot start a process");
  }
  if (process_ == 0) {
    Become(launch);
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
  end_.exit_status = ExitStatusOf(status);
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
