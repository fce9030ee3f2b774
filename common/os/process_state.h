#ifndef CLEW_COMMON_OS_PROCESS_STATE_H_
#define CLEW_COMMON_OS_PROCESS_STATE_H_

#include <string>

namespace clew {

// Returns the kernel's letter for the state of the process or thread of which
// procfs has this `stat` file; 0 if it is gone. 'R': it runs, or waits for a
// CPU; 'S': in a call that waits; 'D': in one that waits and that signals do
// not end; 'T': stopped by a signal; 'Z': not reaped. Does not wait.
//
// Source: proc(5), /proc/pid/stat. The name, in parentheses, may hold anything;
// the state follows it.
char ProcessState(const std::string& stat_path);

}  // namespace clew

#endif  // CLEW_COMMON_OS_PROCESS_STATE_H_
