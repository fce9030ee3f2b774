#include "recorder/core_pattern.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <optional>
#include <string_view>

#include "common/text/path_names.h"
#include "recorder/perf/sysfs.h"

namespace clew::recorder {
namespace {

constexpr size_t kCommBytesMax = 15;  // of %e, TASK_COMM_LEN

// nullopt: not known here.
std::optional<std::string> Expand(char specifier,
                                  const CrashedProcess& dumped) {
  switch (specifier) {
    case '%':
      return "%";
    case 'p':
    case 'P':
    case 'i':
    case 'I':
      return fmt::format("{}", dumped.process);
    case 's':
      return fmt::format("{}", dumped.signal);
    case 'u':
      return fmt::format("{}", getuid());
    case 'g':
      return fmt::format("{}", getgid());
    case 'e':
      return BaseName(dumped.program).substr(0, kCommBytesMax);
    case 'h': {
      utsname name = {};
      uname(&name);
      return name.nodename;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::string> CorePath(const std::string& proc,
                             const CrashedProcess& dumped) {
  const std::string pattern =
      perf::FirstLine(proc + "/sys/kernel/core_pattern").value_or("");
  if (pattern.empty() || pattern.starts_with('|')) {
    return Unsupported(
        "kernel.core_pattern is {:?}, so that the dump is not in a file; ask "
        "that program for it (coredumpctl), and 'clew import --core' takes it",
        pattern);
  }
  std::string path;
  bool has_process = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path += pattern[i];
      continue;
    }
    const auto text = Expand(pattern[++i], dumped);
    if (!text) {
      return Unsupported(
          "kernel.core_pattern is {:?}: the value of %{} is not known", pattern,
          pattern[i]);
    }
    has_process = has_process || pattern[i] == 'p';
    path += *text;
  }
  const auto uses_pid = perf::FirstLine(proc + "/sys/kernel/core_uses_pid");
  if (!has_process && uses_pid.value_or("0") != "0") {
    path += fmt::format(".{}", dumped.process);
  }
  return path.starts_with('/') ? path : dumped.working_directory + "/" + path;
}

}  // namespace clew::recorder
