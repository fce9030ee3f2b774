#ifndef CLEW_DAEMON_SOURCE_SAVER_H_
#define CLEW_DAEMON_SOURCE_SAVER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/os/fd.h"
#include "common/result.h"
#include "daemon/loop/clock.h"
#include "daemon/loop/loop.h"
#include "daemon/source/source.h"

namespace clew::daemon {

struct SaveJob {
  std::string bundle;  // path; must not exist
  SaveOrder order;
  bool expect_core = false;
  uint64_t core_ms_max = 600'000;  // how long the copy may take
  uint64_t triggered_ns = 0;       // MonotonicNs
};

struct SaveEnd {
  Status status;          // an error: there is no bundle
  bool core_cut = false;  // expected, and left out
  SaveReport report;
  uint64_t first_byte_us = 0;  // from the trigger; 0: it failed before
  uint64_t saved_us = 0;       // from the trigger to the durable bundle
};

// Saves bundles, each in a thread of its own, as many at once as are started:
// the source's trace, and the core dump that somebody else writes to a
// descriptor meanwhile. A bundle is there whole or not at all. Not thread-safe.
class Saver {
 public:
  // Both must outlive it.
  Saver(Loop& loop, Clock& clock) : loop_(loop), clock_(clock) {}
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  // Waits for the threads; a core dump that is not whole yet is left out.
  ~Saver();

  using Id = uint64_t;
  using Done = std::function<void(Id, const SaveEnd&)>;
  struct Started {
    Id id = 0;
    Fd core_dump;  // its file, empty, where one is expected
  };

  bool busy() const { return !saves_.empty(); }
  // `done` is called once, from the loop, when the save is none of those at
  // work any more. `source` must live until then.
  [[nodiscard]] Result<Started> Start(PtSource& source, SaveJob job, Done done);
  // The copy of the core dump is over; without effect after the first call, or
  // after the save.
  void CoreEnded(Id id, bool whole);

 private:
  // The copy of a core dump, between two threads.
  class CoreCopy {
   public:
    void End(bool whole);
    bool Wait(uint64_t wait_ms);

   private:
    std::mutex mutex_;
    std::condition_variable ended_;
    std::optional<bool> whole_;
  };
  struct Running {
    CoreCopy core;
    std::thread thread;
  };
  SaveEnd Save(PtSource& source, bundle::BundleWriter& bundle,
               const SaveJob& job, CoreCopy& core) const;
  static Status AddCore(bundle::BundleWriter& bundle, const SaveJob& job,
                        CoreCopy& core, bool* core_cut);

  Loop& loop_;
  Clock& clock_;
  Id last_id_ = 0;
  std::map<Id, std::unique_ptr<Running>> saves_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SOURCE_SAVER_H_
