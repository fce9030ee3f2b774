#ifndef CLEW_COMMON_OS_CONFINEMENT_H_
#define CLEW_COMMON_OS_CONFINEMENT_H_

#include <string>
#include <vector>

#include "common/os/syscall_filter.h"
#include "common/result.h"

namespace clew {

struct ConfinementRequest {
  std::string program;  // absolute paths
  std::string folder;   // the only one to write
  bool may_fork = false;
  // Files beside the system's, and folders of such.
  std::vector<std::string> readable;
  bool may_connect = false;  // to other hosts, by TCP and UDP
};

// What a child that parses hostile bytes may do no more, made ready before the
// fork so that Enter needs neither memory nor locks. Moves.
//
// By capset(2) and no_new_privs: it has no capability and gets none.
//
// By seccomp (common/os/syscall_filter.h), whatever else the kernel has:
// neither sockets, tracing, signals to others, scheduling, owners, modes nor
// times of files, other namespaces, nor anything that is not on a list of what
// a program needs. With `may_connect`, sockets of IP that connect.
//
// By Landlock, as far as the kernel has it: plain files below `folder` may be
// read, made, cut and removed, `program` and the system's programs and
// libraries be read and run, `readable` be read, nothing else be opened; no
// TCP (with `may_connect`, none that listens); no signal to others than its
// own. An ABI before the third leaves cutting
// of files to seccomp, which lets only writers cut.
class Confinement {
 public:
  // kSystem.
  [[nodiscard]] static Result<Confinement> Make(
      const ConfinementRequest& request);
  Confinement(Confinement&& other) noexcept;
  Confinement& operator=(Confinement&&) = delete;
  ~Confinement();

  // For good, for this thread and what it starts. 0 or errno; async-signal-
  // safe. REQUIRES: the only thread of the process.
  int Enter() const;
  // False: the kernel has no Landlock.
  bool limits_files() const { return ruleset_ >= 0; }
  // What Enter needs, closed by exec; -1: nothing.
  int ruleset_fd() const { return ruleset_; }

 private:
  Confinement(int ruleset, SyscallNeeds needs)
      : ruleset_(ruleset), needs_(needs) {}
  int ruleset_;  // -1: none
  SyscallNeeds needs_;
};

}  // namespace clew

#endif  // CLEW_COMMON_OS_CONFINEMENT_H_
