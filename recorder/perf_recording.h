#ifndef CLEW_RECORDER_PERF_RECORDING_H_
#define CLEW_RECORDER_PERF_RECORDING_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/os/file.h"
#include "common/result.h"
#include "recorder/host_description.h"
#include "recorder/images/perf_capture.h"
#include "recorder/perf/perf_session.h"

namespace clew::recorder {

// A session of perf_event and the perf.data files that are made of it. Full
// trace:
//
//   Open, NewCapture, Enable, { Wait, Drain, FollowCores } ..., Disable,
//   FinishFull
//
// Snapshots, any number of them:
//
//   Open, Enable, { FollowCores } ..., NewCapture, TakeSnapshot
//
// AddProcesses adds to a capture the processes that were already running when
// recording began, or whose records a snapshot no longer contains. Call it
// after Enable or TakeSnapshot, so that no process is missed in between.
//
// Not thread-safe. Moves.
class PerfRecording {
 public:
  // `kernel` must outlive it. Errors as of perf::PerfSession::Open;
  // kUnsupported also with PT where perf's clock is not that of the TSC:
  // nothing would tell which thread an instruction is of.
  [[nodiscard]] static Result<PerfRecording> Open(
      perf::PerfKernel& kernel, perf::PerfSessionOptions options);

  perf::PerfSession& session() { return session_; }
  const perf::PerfSession& session() const { return session_; }
  const HostDescription& host() const { return host_; }
  // Absent: perf's clock is not that of the TSC here.
  const std::optional<bundle::TscConversion>& clock() const { return clock_; }
  // Absent without PT.
  const std::optional<bundle::PtInfo>& pt_info() const { return pt_info_; }

  // An empty perf.data; `files` must outlive it.
  [[nodiscard]] Result<PerfCapture> NewCapture(FileSystem& files,
                                               const std::string& path) const;
  // Full trace: everything there is, as one round.
  [[nodiscard]] Status Drain(PerfCapture& capture);
  // As perf::PerfSession::FollowCores. `capture` may be null for snapshots.
  [[nodiscard]] Status FollowCores(PerfCapture* capture);
  // After Disable: the rest of the trace; the session is over.
  [[nodiscard]] Status FinishFull(PerfCapture& capture);
  // Stops all CPUs, hands on what the rings have, and goes on.
  [[nodiscard]] Status TakeSnapshot(PerfCapture& capture);

  // Writes the file; `command` is what its header names. The capture's counts
  // stay.
  [[nodiscard]] Status WriteFile(PerfCapture& capture,
                                 const std::vector<std::string>& command) const;

 private:
  PerfRecording(perf::PerfSession session, perf::PerfSessionOptions options);
  Status NoteIds();

  perf::PerfSession session_;
  perf::PerfSessionOptions options_;
  HostDescription host_;
  std::optional<bundle::TscConversion> clock_;
  std::optional<bundle::PtInfo> pt_info_;
  // Of all CPUs that ever were recorded.
  std::set<uint64_t> sideband_ids_;
  std::set<uint64_t> pt_ids_;
  std::set<CoreId> cores_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PERF_RECORDING_H_
