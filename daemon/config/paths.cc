#include "daemon/config/paths.h"

#include <unistd.h>

#include <utility>

#include "common/os/own_file.h"

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
  const auto places = PlacesBeside(clewd, "clewd-redact");
  const std::string found = FirstFile(places, X_OK);
  return found.empty() ? places.back() : found;
}

}  // namespace clew::daemon
