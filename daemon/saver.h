#ifndef CLEW_DAEMON_SAVER_H_
#define CLEW_DAEMON_SAVER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/fd.h"
#include "common/result.h"
#include "daemon/clock.h"
#include "daemon/loop.h"
#include "daemon/source.h"

namespace clew::daemon {

struct SaveJob {
  std::string bundle;  // path; must not exist
  SaveOrder order;
  bool expect_core = false;
  uint64_t core_ms_max = 600'000;  // how long the copy may take
  uint64_t triggered_ns = 0;       // MonotonicNs
};

struct SaveEnd {
  Status status;               // an error: there is no bundle
  bool core_cut = false;       // expected, and left out
  uint64_t first_byte_us = 0;  // from the trigger; 0: it failed before
  uint64_t saved_us = 0;       // from the trigger to the durable bundle
};

// Saves one bundle at a time, in a thread of its own: the source's trace, and
// the core dump that somebody else writes to a descriptor meanwhile. The bundle
// is there whole or not at all. Not thread-safe.
class Saver {
 public:
  // Both must outlive it.
  Saver(Loop& loop, Clock& clock) : loop_(loop), clock_(clock) {}
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  // Waits for the thread; a core dump that is not whole yet is left out.
  ~Saver();

  bool busy() const { return thread_.joinable(); }
  // Returns the core dump's file, empty, where one is expected; `done` is
  // called once, from the loop. `source` must live until then.
  // REQUIRES: !busy().
  [[nodiscard]] Result<Fd> Start(PtSource& source, SaveJob job,
                                 std::function<void(const SaveEnd&)> done);
  // The copy of the core dump is over; without effect after the first call.
  void CoreEnded(bool whole);

 private:
  SaveEnd Save(PtSource& source, recorder::BundleWriter& bundle,
               const SaveJob& job);
  Status AddCore(recorder::BundleWriter& bundle, const SaveJob& job,
                 bool* core_cut);
  bool WaitForCore(uint64_t wait_ms);

  Loop& loop_;
  Clock& clock_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable core_ended_;
  std::optional<bool> core_whole_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SAVER_H_
