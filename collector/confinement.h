#ifndef CLEW_COLLECTOR_CONFINEMENT_H_
#define CLEW_COLLECTOR_CONFINEMENT_H_

#include <string>

#include "common/result.h"

namespace clew::collector {

// What a child may do no more, made ready before the fork so that Enter needs
// neither memory nor locks. Moves.
//
// By seccomp, refused with EPERM: new sockets, tracing, reading the memory of
// others, leaving the session, other namespaces, mounts, kernel keys, modules,
// BPF, perf events, io_uring, limits of other processes; without `may_fork` new
// processes, too. Calls of another architecture kill.
//
// By Landlock, as far as the kernel has it: plain files below `folder` may be
// read, made and removed, `program` and the system's programs and libraries be
// read and run, nothing else be opened; no TCP; no signal to others than its
// own.
class Confinement {
 public:
  // kSystem.
  [[nodiscard]] static Result<Confinement> Make(const std::string& program,
                                                const std::string& folder,
                                                bool may_fork);
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

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CONFINEMENT_H_
