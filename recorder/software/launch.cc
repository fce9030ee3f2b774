#include "recorder/software/launch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "common/os/child_process.h"
#include "common/os/exec_arguments.h"
#include "common/os/file.h"
#include "recorder/qemu/program_kind.h"

namespace clew::recorder {
namespace {

constexpr const char* kQemu = "qemu-x86_64";

std::vector<std::string> QemuArguments(const Launch& launch) {
  std::vector<std::string> args = {
      kQemu,
      "-cpu",
      kGuestCpu,
      "-seed",
      fmt::format("{}", launch.config.scheduler.seed & INT32_MAX),
      "-U",
      "LD_PRELOAD",
      "-U",
      kPluginConfigVariable,
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
                           const std::vector<char*>& args, pid_t parent) {
  (void)SetLimit(RLIMIT_CORE, 0, 0);
  if (DieWithParent(parent)) {
    execv(qemu.c_str(), args.data());
  }
  _exit(127);
}

}  // namespace

Status CheckProgram(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  switch (ProgramKindOf(file.bytes())) {
    case ProgramKind::kNoElf:
      return Unsupported(
          "{:?} is no ELF program; if it is a script, record its interpreter "
          "with the script as argument",
          path);
    case ProgramKind::kOtherElf:
      return Unsupported("{:?} is no x86-64 program, or not all of one", path);
    case ProgramKind::kX86_64:
      break;
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
  // A terminal sends SIGINT to both; the recorder waits for the end.
  const IgnoreInterrupt ignore;
  const std::string config = FormatPluginConfig(launch.config);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    return SystemError(errno, "cannot start qemu-x86_64");
  }
  if (child == 0) {
    ignore.RestoreInChild();
    setenv(kPluginConfigVariable, config.c_str(), 1);
    setenv("LD_PRELOAD", launch.plugin.c_str(), 1);
    ExecQemu(*qemu, pointers, parent);
  }
  return WaitForChild(child);
}

}  // namespace clew::recorder
