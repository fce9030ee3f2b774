#ifndef CLEW_COMMON_OS_PROCESS_STATE_H_
#define CLEW_COMMON_OS_PROCESS_STATE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace clew {

// Returns the kernel's letter for the state of the process or thread of which
// procfs has this `stat` file; 0 if it is gone. 'R': it runs, or waits for a
// CPU; 'S': in a call that waits; 'D': in one that waits and that signals do
// not end; 'T': stopped by a signal; 'Z': not reaped. Does not wait.
//
// Source: proc(5), /proc/pid/stat. The name, in parentheses, may hold anything;
// the state follows it.
char ProcessState(const std::string& stat_path);

// It is there, and not one that has ended and was not reaped.
bool IsAlive(pid_t process);
// Returns the processes of this host for which `is_wanted`, by ascending id,
// those too that have ended and were not reaped.
std::vector<pid_t> FindProcesses(const std::function<bool(pid_t)>& is_wanted);

// Returns the arguments, as far as they lie in the first `max_bytes`, of the
// process that has this folder in procfs ("/proc/4711"); empty if it is gone.
std::vector<std::string> CommandLineOf(const std::string& folder,
                                       size_t max_bytes);
// Returns its working directory; empty if that may not be known.
std::string WorkingDirectoryOf(const std::string& folder);

// Returns the signals, a bit each from signal 1 on, that a line like
// "SigCgt:\t0000000000000000" of /proc/pid/status tells; none without one.
uint64_t StatusMask(const std::string& status, std::string_view name);

}  // namespace clew

#endif  // CLEW_COMMON_OS_PROCESS_STATE_H_
