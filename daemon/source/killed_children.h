#ifndef CLEW_DAEMON_SOURCE_KILLED_CHILDREN_H_
#define CLEW_DAEMON_SOURCE_KILLED_CHILDREN_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace clew::daemon {

// A child of this process that was sent SIGKILL.
struct KilledChild {
  pid_t process = -1;
  uid_t user = 0;  // at whose process it looked
  int32_t looked_at = 0;
};

// Killed children, until they have ended. One is left behind while the kernel
// cannot end it, because a system call of its waits for something that nobody
// may interrupt; one that has only not been on a CPU since is not. Thread-safe.
class KilledChildren {
 public:
  // Takes a child, for which nobody else may wait.
  void Add(const KilledChild& child);
  // Returns how many have not ended. Reaps those that have.
  size_t NotEnded();
  // Returns how many of those that `wanted` takes are left behind: in state D
  // (common/os/process_state.h). Reaps those that have ended.
  size_t LeftBehind(const std::function<bool(const KilledChild&)>& wanted);

 private:
  void Reap();

  std::mutex mutex_;
  std::vector<KilledChild> killed_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SOURCE_KILLED_CHILDREN_H_
