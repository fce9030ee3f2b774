#ifndef CLEW_COLLECTOR_IDLE_CALLS_H_
#define CLEW_COLLECTOR_IDLE_CALLS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace clew::collector {

// Calls that take a thread for as long as the client likes: few a host, and
// ended when nothing moves. Thread-safe.
class IdleCalls {
 public:
  // `now_s` never goes back. A thread of its own ends idle calls.
  IdleCalls(size_t calls_per_host_max, uint64_t idle_s_max,
            std::function<uint64_t()> now_s);
  IdleCalls(const IdleCalls&) = delete;
  IdleCalls& operator=(const IdleCalls&) = delete;
  ~IdleCalls();  // REQUIRES: no call is left

 private:
  struct Entry {
    std::string host;
    std::function<void()> cancel;
    uint64_t moved_s = 0;
  };

 public:
  // A call while it runs. Not thread-safe.
  class Call {
   public:
    Call(Call&& other) noexcept : calls_(other.calls_), entry_(other.entry_) {
      other.calls_ = nullptr;
    }
    Call& operator=(Call&&) = delete;
    ~Call();
    void Moved();  // something was sent or received

   private:
    friend class IdleCalls;
    Call(IdleCalls* calls, std::list<Entry>::iterator entry)
        : calls_(calls), entry_(entry) {}
    IdleCalls* calls_;
    std::list<Entry>::iterator entry_;
  };

  // nullopt: the host has as many as it may. `cancel` ends the call; it is
  // called at most once a second, and not after ~Call.
  std::optional<Call> Begin(const std::string& host,
                            std::function<void()> cancel);
  size_t running() const;

 private:
  void CancelIdle();
  void Run();

  const size_t calls_per_host_max_;
  const uint64_t idle_s_max_;
  const std::function<uint64_t()> now_s_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::list<Entry> entries_;
  std::map<std::string, size_t> by_host_;
  std::thread thread_;  // last: uses all above
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_IDLE_CALLS_H_
