#include "daemon/source/killed_children.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>

#include "common/os/process_state.h"

namespace clew::daemon {
namespace {

// Its number is its own until it is reaped.
bool CannotBeEnded(const KilledChild& child) {
  return ProcessState(fmt::format("/proc/{}/stat", child.process)) == 'D';
}

}  // namespace

void KilledChildren::Add(const KilledChild& child) {
  const std::scoped_lock lock(mutex_);
  killed_.push_back(child);
  Reap();
}

size_t KilledChildren::NotEnded() {
  const std::scoped_lock lock(mutex_);
  Reap();
  return killed_.size();
}

size_t KilledChildren::LeftBehind(
    const std::function<bool(const KilledChild&)>& wanted) {
  const std::scoped_lock lock(mutex_);
  Reap();
  return static_cast<size_t>(
      std::ranges::count_if(killed_, [&](const KilledChild& child) {
        return wanted(child) && CannotBeEnded(child);
      }));
}

void KilledChildren::Reap() {
  std::erase_if(killed_, [](const KilledChild& child) {
    return waitpid(child.process, nullptr, WNOHANG) != 0;
  });
}

}  // namespace clew::daemon
