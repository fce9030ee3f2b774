#include "recorder/software/launch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "common/os/child_process.h"
#include "common/os/exec_arguments.h"
#include "recorder/qemu/calls/exec_call.h"

namespace clew::recorder {
namespace {

constexpr const char* kQemu = "qemu-x86_64";

// The value of a variable, or nullptr; borrowed.
const char* Variable(const std::vector<std::string>& environment,
                     const std::string& name) {
  const std::string begin = name + "=";
  const auto found = std::ranges::find_if(
      environment,
      [&](const std::string& text) { return text.starts_with(begin); });
  return found == environment.end() ? nullptr : found->c_str() + begin.size();
}

// An execve(2) of the program.
ExecCall CallOf(const bundle::Surroundings& around,
                const std::vector<std::string>& arguments) {
  const std::filesystem::path folder = around.working_directory;
  return {.path = (folder / around.program).string(), .arguments = arguments};
}

// `program` is what the kernel would run.
std::vector<std::string> QemuArguments(const Launch& launch,
                                       const ExecCall& program) {
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
      program.arguments[0]};
  const bundle::Surroundings& around = launch.surroundings;
  if (const char* preload = Variable(around.environment, "LD_PRELOAD");
      preload != nullptr) {
    args.insert(args.end(), {"-E", fmt::format("LD_PRELOAD={}", preload)});
  }
  args.insert(args.end(), {"-plugin", launch.plugin, program.path});
  args.insert(args.end(), program.arguments.begin() + 1,
              program.arguments.end());
  return args;
}

// In the child, between fork and exec.
[[noreturn]] void ExecQemu(const std::string& qemu,
                           const std::vector<char*>& args,
                           const std::vector<char*>& environment,
                           const bundle::Surroundings& around, pid_t parent) {
  (void)SetLimit(RLIMIT_CORE, 0, 0);
  (void)SetLimit(RLIMIT_STACK, around.stack_limit_bytes, RLIM_INFINITY);
  if (chdir(around.working_directory.c_str()) == 0 && DieWithParent(parent)) {
    execve(qemu.c_str(), args.data(), environment.data());
  }
  _exit(127);
}

}  // namespace

Status CheckProgram(const bundle::Surroundings& surroundings) {
  const std::filesystem::path folder = surroundings.working_directory;
  if (std::error_code error; !std::filesystem::is_directory(folder, error)) {
    return InvalidArgument("working directory {:?} is not there",
                           surroundings.working_directory);
  }
  CLEW_ASSIGN_OR_RETURN(program, ProgramOf(surroundings));
  (void)program;  // whoever runs it finds it as well
  return {};
}

Result<std::string> ProgramOf(const bundle::Surroundings& surroundings) {
  CLEW_ASSIGN_OR_RETURN(program, ResolveScripts(CallOf(surroundings, {})));
  return program.path;
}

Result<int> RunUnderQemu(const Launch& launch, ProgramGroup& group) {
  const bundle::Surroundings& around = launch.surroundings;
  const auto qemu = FindProgramIn(Variable(around.environment, "PATH"), kQemu);
  if (!qemu) {
    return Unsupported(
        "no qemu-x86_64 in PATH; install it: apt-get install qemu-user");
  }
  CLEW_ASSIGN_OR_RETURN(program,
                        ResolveScripts(CallOf(around, launch.command)));
  const std::vector<std::string> args = QemuArguments(launch, program);
  const std::vector<char*> pointers = ExecArguments(args);
  const std::vector<std::string> environment =
      QemuEnvironment({.environment = around.environment}, launch.plugin,
                      FormatPluginConfig(launch.config));
  const std::vector<char*> variables = ExecArguments(environment);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    return SystemError(errno, "cannot start qemu-x86_64");
  }
  if (child == 0) {
    group.EnterInChild();
    ExecQemu(*qemu, pointers, variables, around, parent);
  }
  group.Add(child);
  return group.Wait();
}

}  // namespace clew::recorder
