#include "daemon/loop/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

namespace clew::daemon {

Result<std::unique_ptr<Loop>> Loop::Make(Clock& clock) {
  Fd poller(epoll_create1(EPOLL_CLOEXEC));
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (poller.get() < 0 || wake.get() < 0) {
    return SystemError(errno, "cannot make an epoll set");
  }
  std::unique_ptr<Loop> loop(
      new Loop(clock, std::move(poller), std::move(wake)));
  Loop* self = loop.get();
  CLEW_RETURN_IF_ERROR(loop->Watch(self->wake_.get(), EPOLLIN,
                                   [self](uint32_t) { self->RunPosted(); }));
  return loop;
}

Loop::Loop(Clock& clock, Fd poller, Fd wake)
    : clock_(&clock), poller_(std::move(poller)), wake_(std::move(wake)) {}

Status Loop::Watch(int fd, uint32_t events,
                   std::function<void(uint32_t)> ready) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  const int operation = watched_.contains(fd) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (epoll_ctl(poller_.get(), operation, fd, &event) != 0) {
    return SystemError(errno, fmt::format("cannot watch descriptor {}", fd));
  }
  watched_[fd] =
      std::make_shared<std::function<void(uint32_t)>>(std::move(ready));
  return {};
}

void Loop::Forget(int fd) {
  if (watched_.erase(fd) > 0) {
    // Fails if it is closed, which is as good.
    (void)epoll_ctl(poller_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }
}

Loop::TimerId Loop::After(uint64_t delay_ms, std::function<void()> call) {
  const TimerId id = ++last_timer_;
  timers_.emplace(clock_->MonotonicMs() + delay_ms, Timer{id, std::move(call)});
  return id;
}

void Loop::Cancel(TimerId timer) {
  const auto at = std::ranges::find_if(
      timers_, [&](const auto& entry) { return entry.second.id == timer; });
  if (at != timers_.end()) {
    timers_.erase(at);
  }
}

void Loop::Post(std::function<void()> call) {
  {
    const std::scoped_lock lock(mutex_);
    posted_.push_back(std::move(call));
  }
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));  // full: it is awake
}

int Loop::NextTimeoutMs() {
  if (timers_.empty()) {
    return -1;
  }
  const uint64_t now_ms = clock_->MonotonicMs();
  const uint64_t at_ms = timers_.begin()->first;
  return at_ms <= now_ms
             ? 0
             : static_cast<int>(std::min<uint64_t>(at_ms - now_ms, INT_MAX));
}

void Loop::RunTimers() {
  const uint64_t now_ms = clock_->MonotonicMs();
  while (!timers_.empty() && timers_.begin()->first <= now_ms) {
    const auto call = std::move(timers_.begin()->second.call);
    timers_.erase(timers_.begin());
    call();
  }
}

void Loop::RunPosted() {
  uint64_t count = 0;
  (void)!read(wake_.get(), &count, sizeof(count));  // empty: nothing posted
  std::vector<std::function<void()>> calls;
  {
    const std::scoped_lock lock(mutex_);
    calls.swap(posted_);
  }
  for (const auto& call : calls) {
    call();
  }
}

Status Loop::Run() {
  running_ = true;
  while (running_) {
    std::array<epoll_event, 16> events = {};
    const int count =
        epoll_wait(poller_.get(), events.data(),
                   static_cast<int>(events.size()), NextTimeoutMs());
    if (count < 0 && errno != EINTR) {
      return SystemError(errno, "cannot wait for events");
    }
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      const auto at = watched_.find(event.data.fd);
      if (at != watched_.end()) {
        const auto ready = at->second;  // lives through the call
        (*ready)(event.events);
      }
    }
    RunTimers();
  }
  return {};
}

}  // namespace clew::daemon
