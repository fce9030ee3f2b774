#include "daemon/source/perf_source.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "daemon/source/host_look.h"
#include "daemon/source/inspector.h"
#include "recorder/images/perf_capture.h"
#include "recorder/images/process_scan.h"
#include "recorder/perf_bundle.h"
#include "recorder/perf_recording.h"

namespace clew::daemon {
namespace {

using bundle::BundleWriter;

// As many saves as there may be at once. Each holds files open.
constexpr size_t kNotesMax = kSavesMax;
// Of one bundle; images beyond are listed as missing.
constexpr uint64_t kImageBytesMax = uint64_t{1} << 30;

// What procfs told of a process while it was there.
struct NotedProcess {
  int32_t process = 0;
  uint32_t user = 0;
  std::unique_ptr<Inspector> inspector;  // has its files; nullptr: none
  pb::LookedAt looked;
};

// Hands everything on, and calls `first` before the first of it.
class FirstByteSink final : public recorder::perf::SessionSink {
 public:
  FirstByteSink(recorder::PerfCapture& to, const std::function<void()>& first)
      : to_(to), first_(first) {}
  Status OnEvent(CoreId core, const recorder::perf::RecordView& record,
                 const recorder::perf::Event& event) override {
    Tell();
    return to_.OnEvent(core, record, event);
  }
  Status OnAux(CoreId core,
               const recorder::perf::AuxRingPiece& piece) override {
    Tell();
    return to_.OnAux(core, piece);
  }
  void OnGap(CoreId core, const recorder::perf::AuxGap& gap) override {
    to_.OnGap(core, gap);
  }

 private:
  void Tell() {
    if (!std::exchange(told_, true)) {
      first_();
    }
  }
  recorder::PerfCapture& to_;
  const std::function<void()>& first_;
  bool told_ = false;
};

class PerfSource final : public PtSource {
 public:
  PerfSource(recorder::PerfRecording recording, const Config& config,
             const LookTimes& times)
      : recording_(std::move(recording)),
        times_(times),
        has_pt_(config.source == SourceKind::kPerf),
        core_bytes_((has_pt_ ? config.pt_buffer_bytes : 0) +
                    config.data_buffer_bytes) {}

  bool has_pt() const override { return has_pt_; }

  // A perf.data is put together of files beside it (PerfFileWriter).
  uint64_t save_bytes_max() const override { return 2 * RingBytes(); }

  Result<SaveReport> Save(const SaveOrder& order, BundleWriter& bundle,
                          const std::function<void()>& first_byte) override {
    CLEW_ASSIGN_OR_RETURN(
        capture,
        recording_.NewCapture(bundle.files(), bundle.folder() + "/perf.data"));
    CLEW_RETURN_IF_ERROR(Snapshot(capture, first_byte));
    const int32_t process = order.trigger.process;
    SaveReport said;
    NotedProcess noted =
        process == 0 ? NotedProcess() : AwaitNote(process, said);
    CLEW_RETURN_IF_ERROR(AddHost(process, noted, capture, said));
    const std::vector<std::string> command = CommandOf(order, noted);
    CLEW_RETURN_IF_ERROR(recording_.WriteFile(capture, command));
    recorder::PerfRun run;
    run.command = command;
    run.working_directory = noted.looked.working_directory();
    run.started_at_s = order.trigger.at_ns / 1'000'000'000;
    run.failure = order.failure;
    run.core_registers_exact = order.trigger.kind == TriggerKind::kCore;
    run.image_bytes_max = kImageBytesMax;
    // Without PT there is nothing to decode, and a host has many programs.
    run.images = has_pt_ || process != 0;
    if (process != 0) {
      run.image_processes = {process};
    }
    InspectedImages images = ImagesOf(process, noted);
    run.image_source = &images;
    CLEW_ASSIGN_OR_RETURN(
        report, recorder::WritePerfBundle(bundle, recording_, capture, run));
    (void)report;  // the manifest lists what is missing
    return said;
  }

  Fd NoteProcess(int32_t process, uint32_t user) override {
    NotedProcess noted{
        .process = process, .user = user, .inspector = nullptr, .looked = {}};
    Fd all_noted;
    auto inspector = Inspector::Start(user);
    if (inspector && (*inspector)->BeginLook(process, true)) {
      all_noted = (*inspector)->TakeFirstAnswer();
      noted.inspector = std::move(*inspector);
    }
    const std::scoped_lock lock(mutex_);
    noted_.push_back(std::move(noted));
    if (noted_.size() > kNotesMax) {
      noted_.pop_front();  // of a save that failed before it asked
    }
    has_note_.notify_all();
    return all_noted;
  }

  Status FollowCpus() override { return recording_.FollowCores(nullptr); }

  SourceStatus status() const override {
    const std::scoped_lock lock(session_mutex_);
    const auto counts = recording_.session().counts();
    return {.cores = static_cast<uint32_t>(recording_.session().cores().size()),
            .ring_bytes = RingBytes(),
            .lost_records = counts.lost_records + counts.lost_samples,
            .saves = saves_};
  }

 private:
  uint64_t RingBytes() const {
    return recording_.session().cores().size() * core_bytes_;
  }

  NotedProcess AwaitNote(int32_t process, SaveReport& said) {
    const auto end = std::chrono::steady_clock::now() + times_.own;
    NotedProcess noted = TakeNote(process, end);
    if (noted.inspector == nullptr) {
      ++said.unanswered;
      return noted;
    }
    auto reply = noted.inspector->Receive(end);
    if (reply) {
      noted.looked = std::move(*reply->mutable_process());
    } else {
      ++said.unanswered;
    }
    return noted;
  }

  NotedProcess TakeNote(int32_t process, Inspector::Time end) {
    std::unique_lock lock(mutex_);
    auto found = noted_.end();
    has_note_.wait_until(lock, end, [&] {
      found = std::ranges::find(noted_, process, &NotedProcess::process);
      return found != noted_.end();
    });
    if (found == noted_.end()) {
      return {};
    }
    NotedProcess noted = std::move(*found);
    noted_.erase(found);
    return noted;
  }

  // One after another: each stops the rings and starts them again.
  Status Snapshot(recorder::PerfCapture& capture,
                  const std::function<void()>& first_byte) {
    FirstByteSink sink(capture, first_byte);
    const std::scoped_lock lock(session_mutex_);
    CLEW_RETURN_IF_ERROR(recording_.session().Snapshot(sink));
    ++saves_;
    return {};
  }

  // The program's name, where no more is known.
  static std::vector<std::string> CommandOf(const SaveOrder& order,
                                            const NotedProcess& noted) {
    const auto& words = noted.looked.command();
    if (words.empty()) {
      return {order.program};
    }
    return {words.begin(), words.end()};
  }

  // Without a process those of all are wanted, as far as the last look at them
  // holds them. Files of a process that did not answer are not tried again.
  InspectedImages ImagesOf(int32_t process, NotedProcess& noted) const {
    const bool answered = process == 0 || (noted.inspector != nullptr &&
                                           !noted.inspector->is_over());
    return {noted.user, std::move(noted.inspector), times_.image,
            answered ? InspectedImages::kReplacedMax : 0};
  }

  // What runs, and the process that does not any more.
  Status AddHost(int32_t process, NotedProcess& noted,
                 recorder::PerfCapture& capture, SaveReport& said) {
    HostLook look(process == 0 && has_pt_, times_);
    for (const int32_t other : recorder::AllProcesses("/proc")) {
      if (other != process) {
        look.Add(other);
      }
    }
    CLEW_RETURN_IF_ERROR(look.Run([&](int32_t of, const pb::LookedAt& looked) {
      return AddProcesses({Scanned(of, looked)}, capture);
    }));
    said.unanswered += look.unanswered();
    if (process == 0) {
      noted.inspector = look.TakeInspector();
      return {};
    }
    return AddProcesses({Scanned(process, noted.looked)}, capture);
  }

  recorder::PerfRecording recording_;
  const LookTimes times_;
  const bool has_pt_;
  const uint64_t core_bytes_;         // of rings, per CPU
  mutable std::mutex session_mutex_;  // guards the rings, and the next
  uint64_t saves_ = 0;
  std::mutex mutex_;  // guards the next two
  std::condition_variable has_note_;
  std::deque<NotedProcess> noted_;
};

}  // namespace

Result<std::unique_ptr<PtSource>> OpenPerfSource(const Config& config,
                                                 const LookTimes& times) {
  recorder::perf::PerfSessionOptions options;
  options.snapshot = true;
  options.data_bytes = config.data_buffer_bytes;
  if (config.source == SourceKind::kPerf) {
    options.pt = recorder::perf::PtOptions{};
    options.pt->buffer_bytes = config.pt_buffer_bytes;
    options.pt->snapshot = true;
  }
  CLEW_ASSIGN_OR_RETURN(
      recording,
      recorder::PerfRecording::Open(recorder::perf::RealPerfKernel(), options));
  CLEW_RETURN_IF_ERROR(recording.session().Enable());
  return std::make_unique<PerfSource>(std::move(recording), config, times);
}

}  // namespace clew::daemon
