#include "daemon/config/paths.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

namespace clew::daemon {

Paths::Paths(std::string where) : root(std::move(where)) {
  while (!root.empty() && root.back() == '/') {
    root.pop_back();
  }
  config = root + "/etc/clew/clewd.conf";
  socket = root + "/run/clew/clewd.sock";
  state = root + "/var/lib/clew";
  spool = state + "/spool";
  core_pattern = root + "/proc/sys/kernel/core_pattern";
  core_pattern_before = state + "/core_pattern.before";
  core_handler = root + "/usr/lib/clew/clew-core-handler";
  cgroup = root + "/sys/fs/cgroup";
}

std::string RedactProgram(const std::string& clewd) {
  constexpr const char* kName = "clewd-redact";
  const std::filesystem::path folder =
      std::filesystem::path(clewd).parent_path();
  const std::string beside = folder / kName;
  return access(beside.c_str(), X_OK) == 0
             ? beside
             : (folder.parent_path() / "lib/clew" / kName).string();
}

}  // namespace clew::daemon
