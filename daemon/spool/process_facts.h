#ifndef CLEW_DAEMON_SPOOL_PROCESS_FACTS_H_
#define CLEW_DAEMON_SPOOL_PROCESS_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace clew::daemon {

// Facts about a process from procfs; those that it does not tell are empty.
struct ProcessFacts {
  bool exists = false;
  std::string program;        // base name of the executable
  std::string unit;           // systemd's, by its cgroup; "a.service"
  uint32_t user = 0;          // who started it (real user id)
  uint64_t memory_bytes = 0;  // resident and swapped; 0: not known
};
ProcessFacts ReadProcessFacts(const std::string& proc, int32_t process);

// Returns the unit in a line of /proc/PID/cgroup; empty if there is none.
std::string UnitOfCgroup(const std::string& path);

// Returns the children of `process` that have not ended.
std::vector<int32_t> LivingChildren(const std::string& proc, int32_t process);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SPOOL_PROCESS_FACTS_H_
