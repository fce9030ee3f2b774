#ifndef CLEW_RECORDER_PERF_TARGET_H_
#define CLEW_RECORDER_PERF_TARGET_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/os/child_process.h"
#include "common/os/fd.h"
#include "common/result.h"
#include "recorder/perf/kernel.h"

// What a hardware recording is of.

namespace clew::recorder {

// A program that is about to run: forked, and held back before its execve.
// Killed if it is destroyed before its end was seen. While it is there, SIGINT
// (which a terminal sends to both) is ignored by the recorder. Moves.
class HeldProgram {
 public:
  // kInvalidArgument: there is no such program. The soft limit of core dumps is
  // raised to the hard one for it.
  [[nodiscard]] static Result<HeldProgram> Start(
      const std::vector<std::string>& command);
  HeldProgram(HeldProgram&& other) noexcept;
  HeldProgram& operator=(HeldProgram&&) = delete;
  ~HeldProgram();

  pid_t process() const { return process_; }
  // Can be read once the program has ended.
  const Fd& ended() const { return ended_; }
  // Lets it go on to its execve.
  void Go();
  // Tells that it was seen to end, with this wait status.
  void NoteEnd(int status) { seen_status_ = status; }
  // The wait status, once it has ended; 127 also where execve failed.
  [[nodiscard]] Result<std::optional<int>> TryWait();
  void Kill(int signal) const;

 private:
  HeldProgram() = default;

  pid_t process_ = -1;
  std::optional<int> seen_status_;
  Fd go_;
  Fd ended_;
  std::unique_ptr<IgnoreInterrupt> ignore_;  // while it runs
};

// A file descriptor that can be read once the process has ended.
// kInvalidArgument: there is no such process.
[[nodiscard]] Result<Fd> EndOfProcess(int32_t process);

bool HasEnded(const Fd& process_end);

// The folder of a unit's cgroup, below `cgroups` (/sys/fs/cgroup) or its
// subfolder "unified". kInvalidArgument: no such unit is running.
[[nodiscard]] Result<std::string> CgroupOfUnit(const std::string& cgroups,
                                               const std::string& unit);

// The processes in a cgroup and those below it, ascending.
std::vector<int32_t> ProcessesOfCgroup(const std::string& folder);

// The process of a unit that has one. kInvalidArgument: as CgroupOfUnit, or it
// has none or several, which the message names.
[[nodiscard]] Result<int32_t> ProcessOfUnit(const std::string& cgroups,
                                            const std::string& unit);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PERF_TARGET_H_
