#include "replayer/gdb/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "common/file.h"
#include "replayer/gdb/commands.h"
#include "replayer/gdb/server.h"

namespace clew::replayer::gdb {
namespace {

// SIGINT from the terminal reaches us and gdb; gdb decides what it means.
class IgnoreInterrupt {
 public:
  IgnoreInterrupt() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGINT, &ignore, &before_);
  }
  ~IgnoreInterrupt() { ::sigaction(SIGINT, &before_, nullptr); }
  IgnoreInterrupt(const IgnoreInterrupt&) = delete;
  IgnoreInterrupt& operator=(const IgnoreInterrupt&) = delete;

 private:
  struct sigaction before_ = {};
};

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
    return ExitOf(status);
  }
  // Returns the exit status, or nullopt if it still runs.
  std::optional<int> Look() {
    int status = 0;
    return Wait(WNOHANG, status) ? std::optional(ExitOf(status)) : std::nullopt;
  }

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  // Whether it has ended, and its status.
  bool Wait(int flags, int& status) {
    pid_t got = 0;
    do {
      got = ::waitpid(pid_, &status, flags);
    } while (got < 0 && errno == EINTR);
    pid_ = got == 0 ? pid_ : -1;
    return got != 0;
  }
  static int ExitOf(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_t pid_;
};

Result<Child> Child::Start(const LaunchOptions& options,
                           const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  argv.push_back(const_cast<char*>(options.gdb.c_str()));
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);

  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t interrupt;
  ::sigemptyset(&interrupt);
  ::sigaddset(&interrupt, SIGINT);
  ::posix_spawnattr_setsigdefault(&attributes, &interrupt);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (options.batch) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                       O_RDONLY, 0);
  }
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, options.gdb.c_str(), &actions,
                                    &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    return SystemError(failed,
                       "cannot start " + options.gdb + " (Debian package gdb)");
  }
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
