#ifndef CLEW_COMMON_OS_SYSCALL_FILTER_H_
#define CLEW_COMMON_OS_SYSCALL_FILTER_H_

namespace clew {

// What a program needs beyond computing on files.
struct SyscallNeeds {
  bool fork = false;     // processes of its own
  bool network = false;  // to connect by IP
};

// Allows this thread, and what it starts, only the system calls that a program
// needs to compute on files: memory, threads, time, files by name and by
// descriptor, signals to itself. For good. 0 or errno; async-signal-safe.
//
// - Every other call fails with EPERM; one that is newer than this filter with
//   ENOSYS, at which the C library does without. One of another architecture
//   kills.
// - Without `needs.fork`, no new process; with it, none that leaves the
// caller's
//   family or namespaces.
// - Without `needs.network`, no sockets; with it, those of IPv4 and IPv6, which
//   may connect, send and receive, and nothing listens.
// - Nobody but the caller itself can be sent a signal: a process that it starts
//   must end by itself.
//
// REQUIRES: no_new_privs (prctl(2)) or CAP_SYS_ADMIN.
int EnterSyscallFilter(SyscallNeeds needs);

}  // namespace clew

#endif  // CLEW_COMMON_OS_SYSCALL_FILTER_H_
