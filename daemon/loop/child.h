#ifndef CLEW_DAEMON_LOOP_CHILD_H_
#define CLEW_DAEMON_LOOP_CHILD_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/os/fd.h"
#include "common/result.h"
#include "daemon/loop/loop.h"

namespace clew::daemon {

// Gives up CAP_SYS_ADMIN, for this process and every program that it executes.
// Returns false if that fails; errno says why. Async-signal-safe.
bool DropAdministration();

struct ChildLimits {
  uint64_t memory_bytes = 0;  // of address space; 0: as ours
  uint64_t cpu_s = 0;         // 0: none
  uint64_t time_ms = 0;       // then it is killed; 0: none
};

// How a child runs that parses what strangers wrote; Confinement has what it
// may do then. Where we are root, it is `user` and `group`, in no other group;
// where we are not, it is us.
struct ChildCell {
  std::string folder;  // current folder, the only one to write; must be theirs
  std::string input;   // a file as standard input; empty: /dev/null
  uid_t user = 0;
  gid_t group = 0;
};

struct ChildEnd {
  int exit_status = 0;     // 128 + number where a signal ended it
  bool timed_out = false;  // we killed it
  std::string output;      // the first kOutputMax bytes of standard output
  std::string errors;      // the last kErrorsMax bytes of standard error
  // The last line of `errors`, or what happened, for people.
  std::string Why() const;
};

// A child process, noticed by the loop when it ends. It has /dev/null for
// standard input (but for its cell's), no CAP_SYS_ADMIN and no way to get it,
// and dies with us. Destroyed while it runs, it is killed.
class Child {
 public:
  static constexpr size_t kOutputMax = size_t{64} << 10;
  static constexpr size_t kErrorsMax = size_t{4} << 10;

  // `arguments[0]` is a path. `done` is called once, from the loop, and may
  // destroy the child. `loop` must outlive it. Fails with kSystem if no process
  // can be started. A program that does not exist ends with status 127 and a
  // line that says so.
  [[nodiscard]] static Result<std::unique_ptr<Child>> Start(
      Loop& loop, const std::vector<std::string>& arguments,
      const ChildLimits& limits, std::function<void(const ChildEnd&)> done,
      const std::optional<ChildCell>& cell = std::nullopt);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();
  pid_t process() const { return process_; }

 private:
  explicit Child(Loop& loop) : loop_(loop) {}
  Status Begin(const std::vector<std::string>& arguments,
               const ChildLimits& limits, const std::optional<ChildCell>& cell);
  void ReadOutput();
  void ReadErrors();
  void Ended();

  Loop& loop_;
  pid_t process_ = -1;  // -1: over
  Fd handle_;           // a pidfd
  Fd output_;
  Fd errors_;
  Loop::TimerId timer_ = 0;
  ChildEnd end_;
  std::function<void(const ChildEnd&)> done_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_LOOP_CHILD_H_
