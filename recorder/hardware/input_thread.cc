#include "recorder/hardware/input_thread.h"

#ifdef CLEW_RECORDER_BPF

#include <signal.h>

#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "recorder/bpf/input_recording.h"

namespace clew::recorder {
namespace {

using bpf::InputRecording;

// A call's times are exact to a thousandth of this.
constexpr int kPollMs = 10;

// While it is there, threads that are made get no signals.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_ = {};
};

class BpfInputTap final : public ReportingTap {
 public:
  BpfInputTap(FileSystem& files, std::string path, const InputsOptions& options)
      : files_(files), path_(std::move(path)), options_(options) {}

  Status Open(int32_t process, bool from_exec, bool tsc_times) override {
    CLEW_ASSIGN_OR_RETURN(
        recording,
        InputRecording::Open(files_, path_,
                             {.process = process,
                              .from_exec = from_exec,
                              .tsc_times = tsc_times},
                             {.follow_children = false,
                              .ring_bytes = options_.ring_bytes,
                              .bytes_per_second = options_.bytes_per_second}));
    recording_ = std::make_unique<InputRecording>(std::move(recording));
    return {};
  }

  Status Start() override {
    CLEW_RETURN_IF_ERROR(recording_->Start());
    const WithoutSignals guard;
    poller_ = std::jthread([this](const std::stop_token& stop) { Poll(stop); });
    return {};
  }

  Status Check() override {
    const std::lock_guard lock(mutex_);
    return status_;
  }

  Result<uint64_t> Finish() override {
    poller_.request_stop();
    poller_.join();
    CLEW_RETURN_IF_ERROR(status_);
    CLEW_ASSIGN_OR_RETURN(summary, recording_->Finish());
    report_.calls = summary.log.calls;
    report_.unknown = summary.log.unknown + summary.counts.untracked;
    report_.bytes = summary.log.bytes;
    report_.ring_full = summary.counts.lost[bpf::kRawRingFull];
    report_.over_rate = summary.counts.lost[bpf::kRawBudget];
    return report_.unknown;
  }

  InputsReport report() const override { return report_; }

 private:
  void Poll(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Status status = recording_->Poll(kPollMs);
      if (!status) {
        const std::lock_guard lock(mutex_);
        status_ = std::move(status);
        return;
      }
    }
  }

  FileSystem& files_;
  const std::string path_;
  const InputsOptions options_;
  std::unique_ptr<InputRecording> recording_;
  InputsReport report_;
  std::mutex mutex_;
  Status status_;        // of the poller
  std::jthread poller_;  // last, so that it ends before what it uses
};

}  // namespace

Result<std::unique_ptr<ReportingTap>> MakeInputTap(
    FileSystem& files, const std::string& path, const InputsOptions& options) {
  return std::make_unique<BpfInputTap>(files, path, options);
}

}  // namespace clew::recorder

#else

namespace clew::recorder {

Result<std::unique_ptr<ReportingTap>> MakeInputTap(FileSystem&,
                                                   const std::string&,
                                                   const InputsOptions&) {
  return Unsupported(
      "--inputs: left out of this build; install clang, bpftool and libbpf-dev "
      "and build again, or record without inputs");
}

}  // namespace clew::recorder

#endif
