#include "recorder/launch.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/exec_arguments.h"
#include "common/file.h"

namespace clew::recorder {
namespace {

constexpr const char* kQemu = "qemu-x86_64";

bool IsProgram(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> QemuArguments(const Launch& launch) {
  std::vector<std::string> args = {
      kQemu,
      "-cpu",
      kGuestCpu,
      "-seed",
      fmt::format("{}", launch.session.scheduler.seed & INT32_MAX),
      "-U",
      "LD_PRELOAD",
      "-U",
      kSessionVariable,
      "-0",
      launch.command[0]};
  if (const char* preload = getenv("LD_PRELOAD"); preload != nullptr) {
    args.insert(args.end(), {"-E", fmt::format("LD_PRELOAD={}", preload)});
  }
  args.insert(args.end(), {"-plugin", launch.plugin, launch.program});
  args.insert(args.end(), launch.command.begin() + 1, launch.command.end());
  return args;
}

// In the child, between fork and exec.
[[noreturn]] void ExecQemu(const std::string& qemu,
                           const std::vector<char*>& args) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core = {};
  setrlimit(RLIMIT_CORE, &no_core);
  execv(qemu.c_str(), args.data());
  _exit(127);
}

Result<int> WaitFor(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return SystemError(errno, "cannot wait for qemu-x86_64");
    }
  }
  return status;
}

// A terminal sends SIGINT to both; the recorder waits for the program's end.
class IgnoreInterrupt {
 public:
  IgnoreInterrupt() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &before_);
  }
  IgnoreInterrupt(const IgnoreInterrupt&) = delete;
  IgnoreInterrupt& operator=(const IgnoreInterrupt&) = delete;
  ~IgnoreInterrupt() { sigaction(SIGINT, &before_, nullptr); }
  void RestoreInChild() const { sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ = {};
};

}  // namespace

Result<std::string> FindProgram(const std::string& name) {
  if (name.find('/') != name.npos) {
    if (IsProgram(name)) {
      return name;
    }
    return InvalidArgument("{:?} is no executable file", name);
  }
  const char* path = getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    std::string place = std::string(rest.substr(0, colon)) + "/" + name;
    if (IsProgram(place)) {
      return place;
    }
    rest = colon == rest.npos ? "" : rest.substr(colon + 1);
  }
  return InvalidArgument("no program {:?} in PATH", name);
}

Status CheckProgram(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  Elf64_Ehdr head = {};
  if (file.bytes().size() >= sizeof(head)) {
    std::memcpy(&head, file.bytes().data(), sizeof(head));
  }
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) {
    return Unsupported(
        "{:?} is no ELF program; if it is a script, record its interpreter "
        "with the script as argument",
        path);
  }
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64) {
    return Unsupported("{:?} is no x86-64 program", path);
  }
  return {};
}

Result<int> RunUnderQemu(const Launch& launch) {
  const auto qemu = FindProgram(kQemu);
  if (!qemu) {
    return Unsupported(
        "no qemu-x86_64 in PATH; install it: apt-get install qemu-user");
  }
  const std::vector<std::string> args = QemuArguments(launch);
  const std::vector<char*> pointers = ExecArguments(args);
  const IgnoreInterrupt ignore;
  const std::string session = FormatSession(launch.session);
  const pid_t child = fork();
  if (child < 0) {
    return SystemError(errno, "cannot start qemu-x86_64");
  }
  if (child == 0) {
    ignore.RestoreInChild();
    setenv(kSessionVariable, session.c_str(), 1);
    setenv("LD_PRELOAD", launch.plugin.c_str(), 1);
    ExecQemu(*qemu, pointers);
  }
  return WaitFor(child);
}

}  // namespace clew::recorder
