#ifndef CLEW_RECORDER_PERF_PERF_SESSION_H_
#define CLEW_RECORDER_PERF_PERF_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bundle/perf_data/tsc_conversion.h"
#include "common/result.h"
#include "common/units.h"
#include "recorder/perf/core_rings.h"
#include "recorder/perf/event_config.h"
#include "recorder/perf/kernel.h"
#include "recorder/perf/pmu.h"

namespace clew::recorder::perf {

struct PerfSessionOptions {
  // Threads to record, with all that they make later; empty: every thread of
  // the host.
  std::vector<int32_t> threads = {};
  // The folder of a cgroup whose threads are recorded, instead of `threads`:
  // of cgroup v2, or of v1's perf_event controller. Empty: no cgroup.
  std::string cgroup = {};
  // Recording begins when one of `threads` calls execve. Enable after that, so
  // that CPUs that come online later are recorded, too.
  bool enable_on_exec = false;
  // Hardware PT; absent: sideband alone.
  std::optional<PtOptions> pt = {};
  // Rings are overwritten and read by Snapshot; with PT, PtOptions::snapshot
  // must say the same.
  bool snapshot = false;
  uint64_t data_bytes = 512 << 10;  // per CPU, a power of two of pages
  std::string sys = "/sys";         // where CPUs and the PMU are looked up
  std::string proc = "/proc";       // for messages about permissions
};

// Of all CPUs, those that have gone included.
struct SessionCounts {
  uint64_t events = 0;
  uint64_t lost_records = 0;
  uint64_t lost_samples = 0;
  uint64_t skipped_bytes = 0;      // of data rings that broke their format
  uint64_t overwritten_bytes = 0;  // snapshot: of records, before a snapshot
  uint64_t cores_added = 0;        // after Open
  uint64_t cores_gone = 0;
};

// Adds to an error of perf_event what would help: permissions, limits. `proc`
// is where procfs is mounted.
Error ExplainPerfError(Error error, const std::string& proc);

// A recording with perf_event on every CPU that is online. Not thread-safe.
class PerfSession {
 public:
  // `kernel` must outlive the session. Disabled at first.
  //
  // kUnsupported: no intel_pt, or not as the options want it. kSystem: the
  // kernel refused; for want of permission the message says what would help.
  [[nodiscard]] static Result<PerfSession> Open(PerfKernel& kernel,
                                                PerfSessionOptions options);
  PerfSession(PerfSession&&) noexcept = default;
  PerfSession& operator=(PerfSession&&) noexcept = default;
  ~PerfSession();

  [[nodiscard]] Status Enable();
  [[nodiscard]] Status Disable();
  // Waits for a ring to have an eighth of its bytes, or for `timeout_ms`; true
  // if it was a ring.
  [[nodiscard]] Result<bool> Wait(int timeout_ms);
  // Wait wakes up for `fd`, too, when it can be read. It must outlive the
  // session.
  [[nodiscard]] Status WakeFor(const Fd& fd);
  // Full trace: hands on what all rings have, and frees their room.
  [[nodiscard]] Status Drain(SessionSink& sink);
  // Snapshot: stops all CPUs first, then hands on what the rings have, then
  // goes on; also after an error of `sink`.
  [[nodiscard]] Status Snapshot(SessionSink& sink);
  // Opens events on CPUs that have come online, and hands on the rest of those
  // that have gone. To be called now and then; the kernel does not wake us.
  [[nodiscard]] Status FollowCores(SessionSink& sink);
  // After Disable: hands on the rest. Nothing may be called afterwards but
  // counts.
  [[nodiscard]] Status Finish(SessionSink& sink);

  std::vector<CoreId> cores() const;
  SessionCounts counts() const;
  // Of the CPUs that are open.
  [[nodiscard]] Result<EventIds> Ids() const;
  const perf_event_attr& sideband_attr() const { return plan_.sideband; }
  const std::optional<perf_event_attr>& pt_attr() const { return plan_.pt; }
  const std::string& filter_text() const { return plan_.filter_text; }
  // kUnsupported: the kernel's clock is not that of the TSC here
  // (cap_user_time_zero is clear).
  [[nodiscard]] Result<bundle::TscConversion> Conversion() const;

 private:
  PerfSession(PerfKernel& kernel, PerfSessionOptions options);
  Status MakePlan();
  Status OpenCgroup();
  Status OpenCore(CoreId core);
  Status CloseCore(CoreRings& rings, SessionSink& sink);
  Status SnapshotStopped(SessionSink& sink);
  void AddCounts(const CoreRings& rings, SessionCounts& counts) const;

  PerfKernel* kernel_;
  PerfSessionOptions options_;
  CorePlan plan_;
  // Of its own place, since the plan points to it.
  std::unique_ptr<Fd> cgroup_;
  Fd poller_;
  std::map<CoreId, std::unique_ptr<CoreRings>> cores_;
  bool enabled_ = false;
  SessionCounts gone_;  // of CPUs that are closed
};

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_PERF_SESSION_H_
