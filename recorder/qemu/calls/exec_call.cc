#include "recorder/qemu/calls/exec_call.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "common/text/words.h"
#include "recorder/qemu/plugin_config.h"
#include "recorder/qemu/program_kind.h"

namespace clew::recorder {
namespace {

constexpr size_t kTextBytesMax = 128 * 1024;  // MAX_ARG_STRLEN
constexpr size_t kTextsMax = 1 << 16;
constexpr std::string_view kPreload = "LD_PRELOAD=";

// linux/binfmts.h: what of a file says how to run it, and how often a script's
// interpreter may be a script (fs/exec.c, exec_binprm).
constexpr size_t kHeadBytes = 256;
constexpr int kScriptsMax = 5;

std::vector<std::string> ReadTexts(uint64_t array, const GuestMemory& memory) {
  std::vector<std::string> texts;
  while (array != 0 && texts.size() < kTextsMax) {
    const uint64_t at = memory.Load<uint64_t>(array).value_or(0);
    if (at == 0) {
      break;
    }
    texts.push_back(memory.Text(at, kTextBytesMax));
    array += sizeof(uint64_t);
  }
  return texts;
}

Result<std::string> ReadHead(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
      access(path.c_str(), X_OK) != 0) {
    return InvalidArgument("{:?} is no executable file", path);
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return InvalidArgument("{:?} cannot be read", path);
  }
  std::array<char, kHeadBytes> bytes = {};
  const ssize_t count = read(fd, bytes.data(), bytes.size());
  close(fd);
  return std::string(bytes.data(), count < 0 ? 0 : static_cast<size_t>(count));
}

// "#!interpreter argument": the argument is the rest of the line.
Result<ExecCall> InterpreterOf(std::string_view head, ExecCall script) {
  std::string_view line = head.substr(2, head.find('\n') - 2);
  const std::string interpreter(TakeWord(line));
  line = Trimmed(line);
  if (interpreter.empty()) {
    return InvalidArgument("{:?} names no interpreter", script.path);
  }
  std::vector<std::string> arguments = {interpreter};
  if (!line.empty()) {
    arguments.emplace_back(line);
  }
  arguments.push_back(script.path);
  if (!script.arguments.empty()) {
    arguments.insert(arguments.end(), script.arguments.begin() + 1,
                     script.arguments.end());
  }
  script.path = interpreter;
  script.arguments = std::move(arguments);
  return script;
}

Status CheckElf(const std::string& path, std::string_view head) {
  switch (ProgramKindOf(std::as_bytes(std::span(head)))) {
    case ProgramKind::kNoElf:
      return InvalidArgument("{:?} is neither an ELF program nor a script",
                             path);
    case ProgramKind::kOtherElf:
      return Unsupported("{:?} is no x86-64 program", path);
    case ProgramKind::kX86_64:
      break;
  }
  return {};
}

}  // namespace

ExecCall ReadExecCall(uint64_t path, uint64_t arguments, uint64_t environment,
                      const GuestMemory& memory) {
  return {.path = memory.Text(path, kTextBytesMax),
          .arguments = ReadTexts(arguments, memory),
          .environment = ReadTexts(environment, memory)};
}

Result<ExecCall> ResolveScripts(ExecCall call) {
  for (int i = 0; i <= kScriptsMax; ++i) {
    CLEW_ASSIGN_OR_RETURN(head, ReadHead(call.path));
    if (!head.starts_with("#!")) {
      CLEW_RETURN_IF_ERROR(CheckElf(call.path, head));
      return call;
    }
    CLEW_ASSIGN_OR_RETURN(next, InterpreterOf(head, std::move(call)));
    call = std::move(next);
  }
  return InvalidArgument("{:?} is a script of scripts", call.path);
}

std::vector<std::string> QemuCommandLine(const std::vector<std::string>& own,
                                         const ExecCall& call) {
  std::vector<std::string> line;
  size_t i = 0;
  for (; i + 1 < own.size() && own[i] != "-plugin"; ++i) {
    if (own[i] == "-0" || own[i] == "-E") {
      ++i;  // of the program before
    } else {
      line.push_back(own[i]);
    }
  }
  const std::string name = call.arguments.empty() ? "" : call.arguments[0];
  line.insert(line.end(), {"-0", name});
  for (const std::string& variable : call.environment) {
    if (variable.starts_with(kPreload)) {
      line.insert(line.end(), {"-E", variable});
    }
  }
  line.insert(
      line.end(), own.begin() + static_cast<ptrdiff_t>(i),
      own.begin() + static_cast<ptrdiff_t>(std::min(i + 2, own.size())));
  line.push_back(call.path);
  if (!call.arguments.empty()) {
    line.insert(line.end(), call.arguments.begin() + 1, call.arguments.end());
  }
  return line;
}

std::vector<std::string> QemuEnvironment(const ExecCall& call,
                                         const std::string& preload,
                                         const std::string& session) {
  std::vector<std::string> environment;
  std::copy_if(call.environment.begin(), call.environment.end(),
               std::back_inserter(environment), [](const std::string& text) {
                 return !text.starts_with(kPreload);
               });
  environment.push_back(std::string(kPreload) + preload);
  environment.push_back(fmt::format("{}={}", kPluginConfigVariable, session));
  return environment;
}

}  // namespace clew::recorder
