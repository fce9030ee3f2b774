#ifndef CLEW_COLLECTOR_JOBS_JOBS_H_
#define CLEW_COLLECTOR_JOBS_JOBS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "collector/catalogue/catalogue.h"
#include "collector/store/bundle_store.h"
#include "collector/store/schedule_store.h"
#include "common/result.h"

namespace clew::collector {

struct JobOptions {
  static constexpr unsigned kSolversMax = 64;
  std::string clew = "/usr/bin/clew";  // absolute path of the program
  // Bundles are put together here, below the collector's data folder; emptied
  // by Start.
  std::string work_folder;
  unsigned analysers = 1;  // `clew backtrace` at once; 1 to kSolversMax
  unsigned solvers = 1;  // `clew solve` at once; 0: none. At most kSolversMax.
  double analysis_time_limit_s = 60;
  double solve_time_limit_s = 300;  // told to `clew solve`
  double solve_grace_s = 60;        // more than that, to read and to write
  uint64_t memory_bytes = uint64_t{4} << 30;    // of one child
  uint64_t work_bytes_max = uint64_t{8} << 30;  // of a bundle put together
  // A worker waits so long after a failure of the system, then twice as long.
  double retry_s = 1;
  double retry_s_max = 60;
  // A bundle for which there was no room on the disk, or that is damaged, is
  // tried again after so long; others go first.
  int64_t put_off_s = 60;
  // One line on what did not go as it should. From any thread.
  std::function<void(std::string_view)> report;
};

// What was done since Start. Plain values, for /metrics.
struct JobCounts {
  uint64_t analyses = 0;         // ended, whichever way
  uint64_t analyses_failed = 0;  // of these: a signature by the kind alone
  uint64_t solves = 0;           // ended, whichever way
  uint64_t witnesses = 0;
  uint64_t contradictions = 0;
  uint64_t model_differences = 0;
  uint64_t unsolved = 0;
  uint64_t limits_hit = 0;  // children that a limit ended, of either kind
  uint64_t put_off = 0;     // given back: the disk or the system failed
  uint64_t running = 0;     // children now
  double child_cpu_seconds = 0;
};

// Works on the bundles of a catalogue, in child processes with limits:
// `analysers` threads ask `clew backtrace` for the signature of each bundle,
// and `solvers` threads run `clew solve` on what TakeForSolving gives. The
// bytes of strangers are decoded in the children only. Thread-safe.
//
// A child that fails or that a limit ends is an outcome: a bundle without
// backtraces is grouped by the kind of its failure, one without an answer is
// kUnsolved and its `why` names the cause. After a failure of the disk or the
// system the bundle is given back, and the worker waits; the third time that is
// an outcome, too, unless the disk is full or the bundle is damaged in the
// store: it is tried again for as long as that lasts. A bundle under which the
// collector died three times is given up (Catalogue::ReturnTaken). A schedule
// is in `schedules` before the catalogue says kWitness.
class JobRunner {
 public:
  // Returns what a crash left as taken, empties the work folder, begins.
  // kInvalidArgument: options. kSystem. The three must outlive the runner.
  [[nodiscard]] static Result<std::unique_ptr<JobRunner>> Start(
      const JobOptions& options, BundleStore& store, Catalogue& catalogue,
      ScheduleStore& schedules);
  virtual ~JobRunner() = default;  // stops

  // There may be something new. Cheap.
  virtual void Wake() = 0;
  // Ends the children and gives back what they worked on. Twice is once.
  virtual void Stop() = 0;
  // Waits until there is nothing left to do; false after `seconds`.
  virtual bool WaitIdle(double seconds) = 0;
  virtual JobCounts counts() const = 0;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_JOBS_JOBS_H_
