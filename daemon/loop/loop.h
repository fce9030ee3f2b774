#ifndef CLEW_DAEMON_LOOP_LOOP_H_
#define CLEW_DAEMON_LOOP_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "common/os/fd.h"
#include "common/result.h"
#include "daemon/loop/clock.h"

namespace clew::daemon {

// One thread's events: descriptors, times, and calls from other threads.
// Callbacks run one after the other inside Run. Not thread-safe but for Post.
class Loop {
 public:
  using TimerId = uint64_t;

  // `clock` must outlive the loop.
  [[nodiscard]] static Result<std::unique_ptr<Loop>> Make(Clock& clock);

  // Calls `ready` with what epoll says (EPOLLIN, ...) until Forget. `fd` is
  // borrowed. Watching it again replaces both.
  [[nodiscard]] Status Watch(int fd, uint32_t events,
                             std::function<void(uint32_t)> ready);
  void Forget(int fd);

  // Calls once, not before `delay_ms` from now.
  TimerId After(uint64_t delay_ms, std::function<void()> call);
  void Cancel(TimerId timer);  // one that is over, or 0, is fine

  // From any thread: the loop's thread calls `call` soon.
  void Post(std::function<void()> call);

  // Until Stop is called from a callback.
  [[nodiscard]] Status Run();
  void Stop() { running_ = false; }

 private:
  struct Timer {
    TimerId id;
    std::function<void()> call;
  };
  Loop(Clock& clock, Fd poller, Fd wake);
  int NextTimeoutMs();
  void RunTimers();
  void RunPosted();

  Clock* clock_;
  Fd poller_;
  Fd wake_;  // an eventfd
  bool running_ = false;
  // shared_ptr: a callback may forget itself while it runs.
  std::map<int, std::shared_ptr<std::function<void(uint32_t)>>> watched_;
  std::multimap<uint64_t, Timer> timers_;  // by time, ms
  TimerId last_timer_ = 0;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_LOOP_LOOP_H_
