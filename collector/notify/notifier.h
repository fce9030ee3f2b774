#ifndef CLEW_COLLECTOR_NOTIFY_NOTIFIER_H_
#define CLEW_COLLECTOR_NOTIFY_NOTIFIER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "collector/catalogue/notification_queue.h"
#include "collector/notify/webhook.h"
#include "common/digest.h"
#include "common/os/fd.h"
#include "common/result.h"

namespace clew::collector {

// Since the start, but for what waits. Plain values, for /metrics.
struct NotifierCounts {
  uint64_t sent = 0;
  uint64_t failed = 0;    // attempts
  uint64_t given_up = 0;  // notifications, after the last attempt
  uint64_t waiting = 0;
  uint64_t dropped = 0;  // the queue was full; since the catalogue was made
};

// The JSON document of a notification. `page_url` is that of the web page;
// empty: none. docs/operator-guide.md has an example.
std::string BodyOf(const Notification& notification,
                   const std::string& page_url);

// How long to wait after failure number `attempts` (from 1): `first_s`, doubled
// each time up to kNotificationPauseMax_s; of that a part up to the half is
// taken off, as `random` says.
uint64_t PauseAfter(uint64_t attempts, uint64_t first_s, Random& random);

// Sends what is queued, in a thread of its own: nothing that happens there
// delays anybody else. Thread-safe.
class Notifier {
 public:
  static constexpr uint64_t kWaitingMax = 1000;
  struct Options {
    WebhookOptions webhook;  // stop_fd is the notifier's
    std::string secret;
    std::string page_url;
    uint64_t attempts_max = 12;  // about four hours
    uint64_t pause_s_first = 10;
    double look_s = 2;  // between two looks at the queue
    std::function<int64_t()> wall_s;
    // An attempt failed, and why; or the last one did. From its thread.
    std::function<void(const Notification&, std::string_view why,
                       bool given_up)>
        failed;
    // The queue itself failed.
    std::function<void(std::string_view why)> trouble;
  };

  // kSystem.
  [[nodiscard]] static Result<std::unique_ptr<Notifier>> Start(
      Options options, NotificationQueue queue);
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  ~Notifier();  // stops

  void SetSecret(std::string secret);
  // Breaks off what is being sent; it is sent after the next start. Twice is
  // once.
  void Stop();
  NotifierCounts counts() const;

 private:
  Notifier(Options options, NotificationQueue queue, Fd stop_fd);
  void Run();
  // True: there may be more to do at once.
  bool Step();
  // True: there was one.
  [[nodiscard]] Result<bool> SendNext();
  [[nodiscard]] Status Failed(const Notification& notification,
                              const Error& error);
  [[nodiscard]] Status UpdateCounts();
  template <class Change>
  void Count(Change change) {
    const std::lock_guard lock(mutex_);
    change(counts_);
  }
  // False: stop.
  bool Pause();

  const Options options_;
  NotificationQueue queue_;  // of the thread
  Random random_;            // of the thread
  const Fd stop_fd_;

  mutable std::mutex mutex_;  // for the four below
  std::condition_variable stop_asked_;
  bool stop_ = false;
  std::string secret_;
  NotifierCounts counts_;

  std::thread thread_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_NOTIFY_NOTIFIER_H_
