#ifndef CLEW_COLLECTOR_JOBS_JOB_H_
#define CLEW_COLLECTOR_JOBS_JOB_H_

#include <cstddef>
#include <string>
#include <vector>

#include "collector/jobs/confined_child.h"
#include "collector/jobs/jobs.h"

namespace clew::collector {

// One child on one bundle. Errors are of the kinds that the parts below give:
// kSystem may pass, the others are of this bundle. Not thread-safe.
class Job {
 public:
  // Both must outlive it. `stop_fd`: see ChildRequest.
  Job(const JobOptions& options, BundleStore& store, int stop_fd)
      : options_(options), store_(store), stop_fd_(stop_fd) {}

  // Puts the bundle together in a folder of its own. kLimit: too large.
  [[nodiscard]] Status Prepare(const BundleId& id);
  [[nodiscard]] Result<ConfinedChildOutcome> RunBacktrace() const;
  [[nodiscard]] Result<ConfinedChildOutcome> RunSolve() const;
  // What `clew solve` left. kCorruptInput: nothing, or no plain file. kLimit:
  // larger than transfer::kScheduleBytesMax.
  [[nodiscard]] Result<std::vector<std::byte>> ReadSchedule() const;
  // Removes the folder.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

 private:
  ConfinedChildRequest Request(std::vector<std::string> arguments,
                               double wall_s) const;
  std::string BundleFolder() const;

  const JobOptions& options_;
  BundleStore& store_;
  const int stop_fd_;
  std::string folder_;  // empty: not prepared
};

// Why a child that did not end as it should gave nothing: "clew solve: ended by
// signal 11 (Segmentation fault): ...". REQUIRES: not kStopped.
std::string Describe(std::string_view command,
                     const ConfinedChildOutcome& outcome);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_JOBS_JOB_H_
