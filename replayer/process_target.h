#ifndef CLEW_REPLAYER_PROCESS_TARGET_H_
#define CLEW_REPLAYER_PROCESS_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/schedule.h"
#include "follower/recording.h"
#include "replayer/block_ips.h"
#include "replayer/schedule_index.h"
#include "replayer/target.h"
#include "replayer/watch.h"

namespace clew::replayer {

struct ProcessTargetOptions {
  follower::TapeLimits limits;
  // The recorded program's path; empty: the file that is mapped at the entry
  // point.
  std::string exec_path;
  // Names of threads where they are known; others have the program's.
  std::map<Tid, std::string> names;
};

// A recorded process under a schedule, for the timeline. Where the next
// instruction is the first of a signal handler, the signal is delivered: what
// is seen there is the handler's registers and frame. Not thread-safe.
class ProcessTarget final : public ReplayTarget {
 public:
  // Makes the target at position 0. `recording` is borrowed while opening only.
  // Fails with kCorruptInput if the schedule does not fit the recording, and as
  // OpenedRecording::Open does.
  [[nodiscard]] static Result<std::unique_ptr<ProcessTarget>> Open(
      const follower::Recording& recording,
      const std::vector<ScheduleStep>& steps, ProcessTargetOptions options);

  Position position() const override { return process_.retired_total(); }
  Position end() const override { return index_.end(); }
  std::unique_ptr<State> Save() const override;
  void Load(const State& state) override;
  Result<RunStop> Run(Position until, const StopPoints& points,
                      bool pass_first) override;
  std::optional<Tid> ThreadAt(Position position) const override;
  std::optional<Position> LastBefore(Tid thread,
                                     Position position) const override;
  std::optional<Position> FirstFrom(Tid thread,
                                    Position position) const override;
  std::vector<TargetThread> Threads() const override;
  std::optional<machine::Registers> ReadRegisters(Tid thread) const override;
  size_t ReadMemory(TraceeAddr addr, std::span<std::byte> bytes) const override;
  size_t ReadMemoryOf(Tid thread, TraceeAddr addr,
                      std::span<std::byte> bytes) const override;
  std::string ExecPath() const override { return options_.exec_path; }
  std::vector<std::byte> Auxv() const override { return auxv_; }
  x86::FeatureSet cpu_features() const override {
    return process_.cpu_features();
  }
  Failure failure() const override { return failure_; }
  std::optional<machine::Fault> FailingFault() const override;
  void set_output(OutputSink* sink) override { output_ = sink; }

  // Returns the process as it is now, for comparing with evidence.
  const follower::Process& process() const { return process_; }

 private:
  struct Checkpoint final : State {
    explicit Checkpoint(const follower::Process& now) : process(now) {}
    follower::Process process;
  };
  // What one call of Run needs on the way.
  struct RunContext {
    const StopPoints& points;
    WatchMonitor* monitor;  // nullptr: no watchpoints
    bool pass_first;
  };

  ProcessTarget(std::unique_ptr<follower::OpenedRecording> session,
                ScheduleIndex index, Failure failure,
                ProcessTargetOptions options);

  // Run, once the watchpoints are watched.
  Result<RunStop> RunObserved(Position until, RunContext& context);
  // `until` counts the thread's own instructions in these.
  Result<RunStop> RunThread(size_t thread, uint64_t until, RunContext& context);
  Result<RunStop> RunBlock(size_t thread, uint64_t until, RunContext& context);
  Result<RunStop> StepBlock(size_t thread, uint64_t until, RunContext& context);
  Status Advance(size_t thread, uint64_t until);
  bool NextChangesMemory(size_t thread) const;
  Status ArriveAtNext(const RunContext& context, RunStop& stop);
  Status Flush(const RunContext& context, RunStop& stop);
  bool Exists(size_t thread) const;
  // REQUIRES: position < end(); for IndexOf, the thread is in the schedule.
  ScheduleIndex::Place PlaceAt(Position position) const;
  size_t IndexOf(Tid thread) const;

  std::unique_ptr<follower::OpenedRecording> session_;
  follower::Process process_;
  ScheduleIndex index_;
  Failure failure_;
  ProcessTargetOptions options_;
  std::vector<std::byte> auxv_;
  BlockIps block_ips_;
  OutputSink* output_ = nullptr;
};

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_PROCESS_TARGET_H_
