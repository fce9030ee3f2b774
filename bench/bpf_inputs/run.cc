#include "bench/bpf_inputs/run.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "bench/bpf_inputs/process.h"
#include "bench/cpu_time.h"
#include "common/os/file.h"
#include "recorder/bpf/clock_samples.h"
#include "recorder/bpf/input_log_writer.h"
#include "recorder/hardware/input_thread.h"

namespace clew::bench {
namespace {

namespace bpf = recorder::bpf;

constexpr int kPollMs = 10;  // as recorder/hardware/input_thread.cc

// Passes on what it is told, and checks that each call is told where the plan
// has it, by counting what was told of its thread, losses included.
class PlaceCheck final : public bpf::InputSink {
 public:
  PlaceCheck(const CallPlan& plan, pid_t process, bpf::InputSink& next)
      : plan_(plan), first_(process), next_(next) {}

  Status OnCall(const bpf::InputCall& call) override {
    ++calls_;
    const uint64_t place = places_[call.who.thread.as_int()]++;
    if (call.who.thread != first_ && !plan_.Has(place, call.number)) {
      ++misplaced_;
    }
    return next_.OnCall(call);
  }
  Status OnSignal(const bpf::InputSignal& signal) override {
    ++misplaced_;  // nobody sends one
    return next_.OnSignal(signal);
  }
  Status OnLoss(const bpf::InputLoss& loss) override {
    lost_ += loss.count;
    places_[loss.who.thread.as_int()] += loss.count;
    return next_.OnLoss(loss);
  }
  Status OnThreadEnd(const bpf::ThreadName& who) override {
    return next_.OnThreadEnd(who);
  }

  uint64_t calls() const { return calls_; }
  uint64_t lost() const { return lost_; }
  // Calls that are not where the plan has them, and threads of which more or
  // less was told than they called.
  uint64_t misplaced() const {
    const auto wrong = std::ranges::count_if(places_, [&](const auto& told) {
      const bool is_first = told.first == first_.as_int();
      return told.second != (is_first ? 2 : plan_.calls());
    });
    return misplaced_ + static_cast<uint64_t>(wrong) +
           (places_.size() == plan_.threads() + 1 ? 0 : 1);
  }

 private:
  const CallPlan& plan_;
  const Tid first_;
  bpf::InputSink& next_;
  uint64_t calls_ = 0;
  uint64_t lost_ = 0;
  uint64_t misplaced_ = 0;
  // How much was told, by thread.
  std::unordered_map<int32_t, uint64_t> places_;
};

// inputs.pb as `clew record --inputs` writes it, of a process that exists.
class Recorder {
 public:
  static Result<std::unique_ptr<Recorder>> Start(const CallPlan& plan,
                                                 pid_t process,
                                                 const LoadRecorder& how,
                                                 const std::string& path) {
    CLEW_ASSIGN_OR_RETURN(
        source, bpf::KernelInputSource::Open(
                    {.processes = {process},
                     .follow_children = false,
                     .ring_bytes = recorder::InputsOptions().ring_bytes,
                     .bytes_per_second = how.bytes_per_second}));
    CLEW_ASSIGN_OR_RETURN(file, PosixFileSystem().Create(path));
    auto recorder = std::make_unique<Recorder>(
        plan, process, how, std::move(source), std::move(file));
    CLEW_RETURN_IF_ERROR(recorder->source_->Start());
    return recorder;
  }
  Recorder(const CallPlan& plan, pid_t process, const LoadRecorder& how,
           std::unique_ptr<bpf::KernelInputSource> source,
           std::unique_ptr<WritableFile> file)
      : pause_ms_(how.pause_ms),
        source_(std::move(source)),
        file_(std::move(file)),
        log_(*file_, clock_, {.process = process}),
        check_(plan, process, log_) {}

  Status Poll() {
    if (pause_ms_ > 0) {
      usleep(pause_ms_ * 1000);
    } else {
      CLEW_RETURN_IF_ERROR(source_->Wait(kPollMs));
    }
    clock_.Sample();
    return source_->Drain(check_);
  }
  Status Finish() {
    clock_.Sample();
    return source_->Finish(check_);
  }
  bpf::KernelInputCounts counts() const { return source_->counts(); }
  const PlaceCheck& check() const { return check_; }
  uint64_t log_bytes() const { return log_.counts().bytes; }

 private:
  const uint32_t pause_ms_;
  std::unique_ptr<bpf::KernelInputSource> source_;
  std::unique_ptr<WritableFile> file_;
  bpf::ClockSamples clock_;
  bpf::InputLogWriter log_;
  PlaceCheck check_;
};

double OwnCpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return CpuSeconds(usage);
}

}  // namespace

bool LoadRun::is_right() const {
  return counts.units == made && counts.reported == calls &&
         counts.lost_total() == lost && calls + lost == made &&
         misplaced == 0 && counts.untracked == 0 && counts.broken == 0;
}

Result<LoadRun> RunLoad(const CallPlan& plan, const LoadRecorder& how,
                        const std::string& log_path) {
  CLEW_ASSIGN_OR_RETURN(load, LoadProcess::Start(plan));
  std::unique_ptr<Recorder> recorder;
  if (how.bytes_per_second != 0) {
    CLEW_ASSIGN_OR_RETURN(
        started, Recorder::Start(plan, load->process(), how, log_path));
    recorder = std::move(started);
  }
  const double cpu_before = OwnCpuSeconds();
  CLEW_RETURN_IF_ERROR(load->LetGo());
  for (bool has_ended = false; !has_ended;) {
    if (recorder == nullptr) {
      usleep(kPollMs * 1000);
    } else {
      CLEW_RETURN_IF_ERROR(recorder->Poll());
    }
    CLEW_ASSIGN_OR_RETURN(ended, load->HasEnded());
    has_ended = ended;
  }
  LoadRun run;
  if (recorder != nullptr) {
    CLEW_RETURN_IF_ERROR(recorder->Finish());
    run.counts = recorder->counts();
    run.calls = recorder->check().calls();
    run.lost = recorder->check().lost();
    run.misplaced = recorder->check().misplaced();
    run.log_bytes = recorder->log_bytes();
  }
  run.recorder_cpu_s = OwnCpuSeconds() - cpu_before;
  run.seconds = load->seconds();
  run.child_cpu_s = load->cpu_seconds();
  run.made = load->calls_made();
  return run;
}

}  // namespace clew::bench
