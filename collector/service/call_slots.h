#ifndef CLEW_COLLECTOR_SERVICE_CALL_SLOTS_H_
#define CLEW_COLLECTOR_SERVICE_CALL_SLOTS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "collector/service/service.h"
#include "common/result.h"

namespace clew::collector {

struct CallLimits {
  std::string what = "calls";  // for messages
  size_t host_max = 4;         // at once, of one host
  size_t total_max = 64;       // at once, of all
  size_t reserved = 16;        // of those, for engineers alone
  // Of a call that streams: one that was idle for so long is ended, and so is
  // one that moved less than this rate in a window of that time. 0: never, and
  // no call makes way for another.
  uint64_t idle_s_max = 60;
  uint64_t bytes_per_s_min = 1024;
};

// Who may have a call at work. Each takes a thread, a transfer for as long as
// its client likes, so the threads are shared out:
//
// - a host has at most `host_max`, all but engineers `total_max - reserved`;
// - where all are taken, a transfer makes way for a newcomer: the slowest of
//   those that are below the least rate, or else the slowest of the host with
//   the most, if that host then still has more than the newcomer's had.
//   Engineers' transfers never make way.
//
// So a host that has nothing waits for no host that has two, and for none that
// trickles. Thread-safe.
class CallSlots {
 public:
  // A call this young is not yet called slow.
  static constexpr uint64_t kYoung_s = 10;

  // `now_s` never goes back. A thread of its own ends idle calls.
  CallSlots(const CallLimits& limits, std::function<uint64_t()> now_s);
  CallSlots(const CallSlots&) = delete;
  CallSlots& operator=(const CallSlots&) = delete;
  ~CallSlots();  // REQUIRES: no call is left

 private:
  struct Entry {
    std::string host;
    bool engineer = false;
    std::function<void()> cancel;
    uint64_t moved_s = 0;  // last
    uint64_t window_begin_s = 0;
    uint64_t window_bytes = 0;
    bool ended = false;  // its thread has not noticed yet
  };
  using Entries = std::list<Entry>;

 public:
  // A call while it runs. Not thread-safe.
  class Call {
   public:
    Call(Call&& other) noexcept : slots_(other.slots_), entry_(other.entry_) {
      other.slots_ = nullptr;
    }
    Call& operator=(Call&&) = delete;
    ~Call();
    void Moved(uint64_t bytes);  // so much was sent or received

   private:
    friend class CallSlots;
    Call(CallSlots* slots, Entries::iterator entry)
        : slots_(slots), entry_(entry) {}
    CallSlots* slots_;
    Entries::iterator entry_;
  };

  // kSystem (EAGAIN): no place for it. `cancel` ends the call; it is called at
  // most once a second, and not after ~Call.
  [[nodiscard]] Result<Call> Begin(const Caller& caller,
                                   std::function<void()> cancel);
  size_t running() const;

 private:
  // All below REQUIRE mutex_.
  bool HasRoom(const Caller& caller) const;
  // The call that makes way for one of that host; nullptr: none.
  Entry* Victim(const std::string& host);
  bool IsSlow(const Entry& entry, uint64_t now_s) const;
  static double RateOf(const Entry& entry, uint64_t now_s);
  // Calls of a host that were not ended.
  std::map<std::string, size_t> LiveByHost() const;
  static void End(Entry& entry);
  void EndIdle();
  void Run();

  const CallLimits limits_;
  const std::function<uint64_t()> now_s_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  Entries entries_;
  std::map<std::string, size_t> by_host_;
  std::thread thread_;  // last: uses all above
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_CALL_SLOTS_H_
