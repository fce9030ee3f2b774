#include "replayer/gdb/launch_gdb.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "common/os/child_process.h"
#include "common/os/file.h"
#include "replayer/gdb/commands.h"
#include "replayer/gdb/gdb_server.h"

namespace clew::replayer::gdb {
namespace {

// gdb as a child process: ended and reaped when this goes.
class Child {
 public:
  static Result<Child> Start(const LaunchOptions& options,
                             const std::vector<std::string>& arguments);
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      WaitForEnd();
    }
  }
  // Returns the exit status when it has ended.
  int WaitForEnd() {
    int status = 0;
    Wait(0, status);
    return ExitStatusOf(status);
  }
  // Returns the exit status, or nullopt if it still runs.
  std::optional<int> Look() {
    int status = 0;
    return Wait(WNOHANG, status) ? std::optional(ExitStatusOf(status))
                                 : std::nullopt;
  }

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  // Whether it has ended, and its wait status.
  bool Wait(int flags, int& status) {
    pid_t got = 0;
    do {
      got = ::waitpid(pid_, &status, flags);
    } while (got < 0 && errno == EINTR);
    pid_ = got == 0 ? pid_ : -1;
    return got != 0;
  }
  pid_t pid_;
};

Result<Child> Child::Start(const LaunchOptions& options,
                           const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {options.gdb};
  command.insert(command.end(), arguments.begin(), arguments.end());
  SpawnOptions spawn;
  spawn.default_interrupt = true;
  spawn.failure = "cannot start " + options.gdb + " (Debian package gdb)";
  Fd null;
  if (options.batch) {
    null = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null.is_open()) {
      return SystemError(errno, "cannot open /dev/null");
    }
    spawn.input = null.get();
  }
  CLEW_ASSIGN_OR_RETURN(pid, SpawnProgram(command, spawn));
  return Child(pid);
}

Result<Fd> AcceptFrom(const Fd& listener, Child& child) {
  constexpr int kLookMs = 100;
  while (true) {
    pollfd poll = {listener.get(), POLLIN, 0};
    if (::poll(&poll, 1, kLookMs) > 0) {
      return Accept(listener);
    }
    if (const auto status = child.Look()) {
      return SystemError(
          ECONNABORTED,
          fmt::format("gdb left with status {} before it connected", *status));
    }
  }
}

std::vector<std::string> GdbArguments(const LaunchOptions& options,
                                      const std::string& commands_file) {
  std::vector<std::string> arguments = {"-q"};
  if (options.batch) {
    arguments.insert(arguments.end(), {"-nx", "-batch"});
  }
  arguments.insert(arguments.end(),
                   {"-ix", commands_file, "-ex", "clew-connect", "-ex",
                    options.quiet ? "frame" : "clew-show-failure"});
  if (!options.quiet && !options.batch) {
    arguments.insert(arguments.end(), {"-ex", "clew-show-next"});
  }
  for (const std::string& command : options.commands) {
    arguments.insert(arguments.end(), {"-ex", command});
  }
  return arguments;
}

}  // namespace

Result<GdbFolder> GdbFolder::Make(const std::string& remote) {
  CLEW_ASSIGN_OR_RETURN(folder, ScratchFolder::Make("clew-gdb"));
  GdbFolder made(std::move(folder));
  const std::string text = CommandsFor(remote.empty() ? made.socket() : remote);
  CLEW_RETURN_IF_ERROR(WriteWholeFile(PosixFileSystem(), made.commands(),
                                      std::as_bytes(std::span(text))));
  return made;
}

Result<int> RunGdb(const LaunchOptions& options, Timeline& timeline,
                   ImageFiles& files) {
  CLEW_ASSIGN_OR_RETURN(folder, GdbFolder::Make());
  CLEW_ASSIGN_OR_RETURN(listener, ListenUnix(folder.socket()));
  // SIGINT from the terminal reaches us and gdb; gdb decides what it means.
  const IgnoreInterrupt ignore;
  CLEW_ASSIGN_OR_RETURN(
      child, Child::Start(options, GdbArguments(options, folder.commands())));
  {
    CLEW_ASSIGN_OR_RETURN(connection, AcceptFrom(listener, child));
    CLEW_RETURN_IF_ERROR(
        Serve(connection.get(), connection.get(), timeline, files));
    // Closed here, so that gdb does not wait for a reply when it goes on.
    connection = Fd();
  }
  return child.WaitForEnd();
}

}  // namespace clew::replayer::gdb
