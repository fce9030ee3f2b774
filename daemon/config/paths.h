#ifndef CLEW_DAEMON_CONFIG_PATHS_H_
#define CLEW_DAEMON_CONFIG_PATHS_H_

#include <string>

namespace clew::daemon {

// Where things are on a host; all below `where`, which tests choose.
struct Paths {
  // "/" or an absolute folder. REQUIRES: not empty.
  explicit Paths(std::string where);

  std::string root;                 // "" for "/"
  std::string config;               // /etc/clew/clewd.conf
  std::string socket;               // /run/clew/clewd.sock
  std::string state;                // /var/lib/clew
  std::string spool;                // /var/lib/clew/spool
  std::string core_pattern;         // /proc/sys/kernel/core_pattern
  std::string core_pattern_before;  // /var/lib/clew/core_pattern.before
  std::string core_handler;         // /usr/lib/clew/clew-core-handler
  std::string cgroup;               // /sys/fs/cgroup
};

// Returns the path of clewd-redact: beside `clewd`, as in a build folder, else
// in ../lib/clew from there, as packages put it.
std::string RedactProgram(const std::string& clewd);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_CONFIG_PATHS_H_
