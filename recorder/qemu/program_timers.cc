#include "recorder/qemu/program_timers.h"

#include <algorithm>

namespace clew::recorder {
namespace {

bool IsZero(const timespec& time) {
  return time.tv_sec == 0 && time.tv_nsec == 0;
}

}  // namespace

std::optional<itimerspec> ProgramTimers::Set(const Key& key, uint64_t clock_id,
                                             bool absolute,
                                             const itimerspec& wanted,
                                             const Now& now) {
  if (!IsTime(wanted.it_value) || !IsTime(wanted.it_interval)) {
    return std::nullopt;
  }
  const auto at = clock_->When(clock_id, wanted.it_value);
  if (!at) {
    return std::nullopt;
  }
  if (IsZero(wanted.it_value)) {
    armed_.erase(key);
    return wanted;
  }
  const uint64_t now_ns = clock_->Now(now.ticks);
  const uint64_t value = Nanoseconds(wanted.it_value);
  if (value == VirtualClock::kNever || *at == VirtualClock::kNever) {
    armed_.erase(key);
    return itimerspec{
        .it_interval = wanted.it_interval,
        .it_value = absolute ? ToTimespec(uint64_t{1} << 62) : wanted.it_value};
  }
  const uint64_t due_ns = absolute ? *at : now_ns + value;
  const uint64_t late_ns = lateness_.DrawNs();
  const uint64_t run_ns = std::max(due_ns, now_ns) - now_ns + late_ns;
  armed_[key] = {.host_ns = now.host_ns + run_ns,
                 .due_ns = std::max(due_ns, now_ns),
                 .late_ns = late_ns,
                 .interval_ns = Nanoseconds(wanted.it_interval)};
  return itimerspec{.it_interval = wanted.it_interval,
                    .it_value = ToTimespec(run_ns)};
}

// To the first expiry after `host_ns`. REQUIRES: it has an interval.
void ProgramTimers::Advance(Armed& timer, uint64_t host_ns) {
  const uint64_t expired = (host_ns - timer.host_ns) / timer.interval_ns + 1;
  timer.host_ns += expired * timer.interval_ns;
  timer.due_ns += expired * timer.interval_ns;
}

itimerspec ProgramTimers::Left(const Key& key, const itimerspec& host_left,
                               const Now& now) const {
  const auto found = armed_.find(key);
  if (found == armed_.end() || IsZero(host_left.it_value)) {
    return host_left;
  }
  Armed timer = found->second;
  if (timer.host_ns <= now.host_ns && timer.interval_ns > 0) {
    Advance(timer, now.host_ns);
  }
  const uint64_t now_ns = clock_->Now(now.ticks);
  itimerspec left = host_left;
  left.it_value = ToTimespec(std::max(timer.due_ns, now_ns + 1) - now_ns);
  return left;
}

std::optional<uint64_t> ProgramTimers::ExpiredNs(uint64_t host_ns) {
  std::optional<uint64_t> expired;
  for (auto at = armed_.begin(); at != armed_.end();) {
    Armed& timer = at->second;
    if (timer.host_ns > host_ns) {
      ++at;
      continue;
    }
    const bool repeats = timer.interval_ns > 0;
    if (repeats) {
      Advance(timer, host_ns);
    }
    const uint64_t due_ns = timer.due_ns - timer.interval_ns;
    expired = std::max(expired.value_or(0), due_ns + timer.late_ns);
    at = repeats ? std::next(at) : armed_.erase(at);
  }
  return expired;
}

}  // namespace clew::recorder
