#include "recorder/perf_recording.h"

#include <algorithm>
#include <utility>

namespace clew::recorder {
namespace {

using bundle::BuildPtInfo;
using bundle::BuildTimeConv;
using bundle::PerfFileHead;
using bundle::PtInfo;

// For FollowCores between snapshots, when a CPU that goes hands on nothing.
class NoSink final : public perf::SessionSink {
 public:
  Status OnEvent(CoreId, const perf::RecordView&, const perf::Event&) override {
    return {};
  }
  Status OnAux(CoreId, const perf::AuxRingPiece&) override { return {}; }
  void OnGap(CoreId, const perf::AuxGap&) override {}
};

// With SWITCH records of own threads, or of whole CPUs (tools/perf/arch/x86/
// util/intel-pt.c, have_sched_switch).
uint64_t SwitchKind(const perf::PerfSessionOptions& options) {
  return options.threads.empty() ? 3 : 2;
}

}  // namespace

PerfRecording::PerfRecording(perf::PerfSession session,
                             perf::PerfSessionOptions options)
    : session_(std::move(session)),
      options_(std::move(options)),
      host_(DescribeHost(options_.proc)) {}

Result<PerfRecording> PerfRecording::Open(perf::PerfKernel& kernel,
                                          perf::PerfSessionOptions options) {
  CLEW_ASSIGN_OR_RETURN(session, perf::PerfSession::Open(kernel, options));
  PerfRecording recording(std::move(session), std::move(options));
  if (auto clock = recording.session_.Conversion()) {
    recording.clock_ = *clock;
  } else if (recording.options_.pt) {
    return std::unexpected(std::move(clock).error());
  }
  if (recording.options_.pt) {
    CLEW_ASSIGN_OR_RETURN(pmu, perf::Pmu::Discover(recording.options_.sys));
    PtInfo info = DescribePt(pmu);
    info.clock = recording.clock_;
    info.have_sched_switch = SwitchKind(recording.options_);
    info.snapshot = recording.options_.snapshot;
    info.filter = recording.session_.filter_text();
    recording.pt_info_ = std::move(info);
  }
  CLEW_RETURN_IF_ERROR(recording.NoteIds());
  return recording;
}

Status PerfRecording::NoteIds() {
  CLEW_ASSIGN_OR_RETURN(ids, session_.Ids());
  sideband_ids_.insert(ids.sideband.begin(), ids.sideband.end());
  pt_ids_.insert(ids.pt.begin(), ids.pt.end());
  for (const CoreId core : session_.cores()) {
    cores_.insert(core);
  }
  return {};
}

// Time 0 of the TSC, where perf's clock is not before its own 0 then.
Result<PerfCapture> PerfRecording::NewCapture(FileSystem& files,
                                              const std::string& path) const {
  CLEW_ASSIGN_OR_RETURN(capture, PerfCapture::Create(files, path));
  const bool later = clock_ && static_cast<int64_t>(clock_->zero) > 0;
  capture.SetOrigin(later ? clock_->zero : 0,
                    sideband_ids_.empty() ? 0 : *sideband_ids_.begin());
  return std::move(capture);
}

Status PerfRecording::Drain(PerfCapture& capture) {
  CLEW_RETURN_IF_ERROR(session_.Drain(capture));
  return capture.EndRound();
}

Status PerfRecording::FollowCores(PerfCapture* capture) {
  NoSink none;
  const auto before = session_.cores();
  CLEW_RETURN_IF_ERROR(session_.FollowCores(
      capture != nullptr ? static_cast<perf::SessionSink&>(*capture) : none));
  const auto now = session_.cores();
  if (now == before) {
    return {};
  }
  for (const CoreId core : now) {
    const bool came = std::ranges::find(before, core) == before.end();
    if (capture != nullptr && came && cores_.contains(core)) {
      capture->RestartCore(core);
    }
  }
  return NoteIds();
}

Status PerfRecording::FinishFull(PerfCapture& capture) {
  CLEW_RETURN_IF_ERROR(session_.Drain(capture));
  return session_.Finish(capture);
}

Status PerfRecording::TakeSnapshot(PerfCapture& capture) {
  return session_.Snapshot(capture);
}

Status PerfRecording::WriteFile(PerfCapture& capture,
                                const std::vector<std::string>& command) const {
  PerfFileHead head{.events = {},
                    .host_name = host_.host_name,
                    .os_release = host_.os_release,
                    .version = "clew " CLEW_VERSION,
                    .cpu_description = host_.cpu.name,
                    .cpu_id = host_.cpu.PerfId(),
                    .cores_present = static_cast<uint32_t>(cores_.size()),
                    .cores_online = static_cast<uint32_t>(cores_.size()),
                    .command = command,
                    .pt_type = 0};
  ByteBuilder first;
  const auto& pt_attr = session_.pt_attr();
  if (pt_info_ && pt_attr) {
    head.pt_type = pt_info_->pmu_type;
    head.events.push_back({.attr = *pt_attr,
                           .name = "intel_pt//u",
                           .ids = {pt_ids_.begin(), pt_ids_.end()}});
    first.PutBytes(BuildPtInfo(*pt_info_).bytes());
  }
  head.events.push_back({.attr = session_.sideband_attr(),
                         .name = "dummy:u",
                         .ids = {sideband_ids_.begin(), sideband_ids_.end()}});
  if (clock_) {
    first.PutBytes(BuildTimeConv(*clock_).bytes());
  }
  return capture.Finish(head, first.bytes(), clock_ ? &*clock_ : nullptr);
}

}  // namespace clew::recorder
