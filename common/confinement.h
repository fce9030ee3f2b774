#ifndef CLEW_COMMON_CONFINEMENT_H_
#define CLEW_COMMON_CONFINEMENT_H_

#include <string>
#include <vector>

#include "common/result.h"

namespace clew {

struct ConfinementRequest {
  std::string program;  // absolute paths
  std::string folder;   // the only one to write
  bool may_fork = false;
  std::vector<std::string> readable;  // files beside the system's
};

// What a child that parses hostile bytes may do no more, made ready before the
// fork so that Enter needs neither memory nor locks. Moves.
//
// By capset(2) and no_new_privs: it has no capability and gets none.
//
// By seccomp (common/syscall_filter.h), whatever else the kernel has: neither
// sockets, tracing, signals to others, scheduling, owners, modes nor times of
// files, other namespaces, nor anything that is not on a list of what a program
// needs.
//
// By Landlock, as far as the kernel has it: plain files below `folder` may be
// read, made, cut and removed, `program` and the system's programs and
// libraries be read and run, `readable` be read, nothing else be opened; no
// TCP; no signal to others than its own. An ABI before the third leaves cutting
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
  Confinement(int ruleset, bool may_fork)
      : ruleset_(ruleset), may_fork_(may_fork) {}
  int ruleset_;  // -1: none
  bool may_fork_;
};

}  // namespace clew

#endif  // CLEW_COMMON_CONFINEMENT_H_
