#include "recorder/perf_record.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "common/check.h"
#include "common/os/process_state.h"
#include "recorder/images/process_scan.h"
#include "recorder/perf_target.h"

namespace clew::recorder {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTurn{1000};  // between looks at CPUs and processes
constexpr milliseconds kDumpGrace{10'000};  // for a core dump of a hang
constexpr int kAttachTries = 10;

// A manifest has to have room for them.
constexpr size_t kCommandBytesMax = 64 << 10;

class Recorder {
 public:
  Recorder(perf::PerfKernel& kernel, FileSystem& files,
           const PerfRecordOptions& options, const std::string& perf_data)
      : kernel_(kernel),
        files_(files),
        options_(options),
        perf_data_(perf_data),
        scanner_(options.proc) {}

  Result<PerfRecorded> Run() {
    CLEW_RETURN_IF_ERROR(CheckOptions());
    run_.started_at_s = std::time(nullptr);
    // What strangers mapped is not to lead root to files that they may not
    // read.
    if (options_.command.empty() && geteuid() == 0) {
      run_.image_rights = ImageRights::kAnyone;
    }
    CLEW_ASSIGN_OR_RETURN(recording, OpenTarget());
    CLEW_RETURN_IF_ERROR(Begin(recording));
    CLEW_RETURN_IF_ERROR(UntilEnd(recording));
    CLEW_RETURN_IF_ERROR(End(recording));
    GiveBack();
    CLEW_RETURN_IF_ERROR(recording.WriteFile(capture(), run_.command));
    return PerfRecorded{.recording = std::move(recording),
                        .capture = std::move(capture()),
                        .run = std::move(run_),
                        .dumped_core = dumped_core_,
                        .stopped_ms = stopped_ms_,
                        .no_start = std::move(no_start_),
                        .not_given_back = std::move(not_given_back_)};
  }

 private:
  Status CheckOptions() const {
    const int targets =
        (options_.command.empty() ? 0 : 1) + (options_.process == 0 ? 0 : 1) +
        (options_.unit.empty() ? 0 : 1) + (options_.cgroup.empty() ? 0 : 1) +
        (options_.whole_host ? 1 : 0);
    if (targets != 1) {
      return InvalidArgument(
          "wanted one of: a command behind --, --pid, --unit, --cgroup, "
          "--system-wide; found {}",
          targets);
    }
    if (options_.process < 0) {
      return InvalidArgument("there is no process {}", options_.process);
    }
    return options_.inputs == nullptr ? Status() : CheckInputs();
  }

  Status CheckInputs() const {
    if (options_.command.empty() && options_.process == 0) {
      return InvalidArgument(
          "--inputs needs a command or --pid: the input log of a bundle is of "
          "one process, a unit, a cgroup and the host may have many");
    }
    if (options_.snapshot) {
      return InvalidArgument(
          "--inputs and --snapshot exclude each other: the input log begins "
          "with the recording, and there is no history of the last moments "
          "alone");
    }
    return {};
  }

  perf::PerfSessionOptions SessionFor(std::vector<int32_t> threads) const {
    return {.threads = std::move(threads),
            .pt = options_.pt,
            .snapshot = options_.snapshot,
            .data_bytes = options_.data_bytes,
            .sys = options_.sys,
            .proc = options_.proc};
  }

  Result<PerfRecording> OpenTarget() {
    if (!options_.command.empty()) {
      return OpenLaunched();
    }
    if (options_.process != 0) {
      return OpenAttached();
    }
    perf::PerfSessionOptions session = SessionFor({});
    session.cgroup = options_.cgroup;
    if (!options_.unit.empty()) {
      CLEW_ASSIGN_OR_RETURN(
          folder, CgroupOfUnit(options_.sys + "/fs/cgroup", options_.unit));
      session.cgroup = folder;
    }
    cgroup_ = session.cgroup;
    return PerfRecording::Open(kernel_, std::move(session));
  }

  Result<PerfRecording> OpenLaunched() {
    CLEW_ASSIGN_OR_RETURN(program, HeldProgram::Start(options_.command));
    program_.emplace(std::move(program));
    process_ = program_->process();
    run_.command = options_.command;
    run_.working_directory = WorkingDirectoryOf(options_.proc + "/self");
    perf::PerfSessionOptions session = SessionFor({process_});
    session.enable_on_exec = true;
    return PerfRecording::Open(kernel_, std::move(session));
  }

  // A thread that is made between the list and the opening of its maker's event
  // has none of its own: once no thread came meanwhile, none is missing.
  Result<PerfRecording> OpenAttached() {
    process_ = options_.process;
    run_.command = CommandLineOf(fmt::format("{}/{}", options_.proc, process_),
                                 kCommandBytesMax);
    run_.working_directory =
        WorkingDirectoryOf(fmt::format("{}/{}", options_.proc, process_));
    CLEW_ASSIGN_OR_RETURN(ended, EndOfProcess(process_));
    ended_ = std::move(ended);
    for (int i = 0; i < kAttachTries; ++i) {
      CLEW_ASSIGN_OR_RETURN(threads, ThreadsOf(options_.proc, process_));
      auto recording = PerfRecording::Open(kernel_, SessionFor(threads));
      if (!recording && recording.error().sys_errno == ESRCH) {
        continue;  // one of them ended
      }
      if (!recording) {
        return recording;
      }
      CLEW_ASSIGN_OR_RETURN(now, ThreadsOf(options_.proc, process_));
      if (std::ranges::includes(threads, now)) {
        return recording;
      }
    }
    return LimitReached(
        "process {} makes and ends threads so fast that they could not be "
        "recorded all at once in {} tries; record its unit, cgroup or the "
        "whole "
        "host",
        process_, kAttachTries);
  }

  // What runs and belongs to the target.
  std::vector<int32_t> Processes() const {
    if (process_ != 0) {
      return {process_};
    }
    return cgroup_.empty() ? AllProcesses(options_.proc)
                           : ProcessesOfCgroup(cgroup_);
  }

  Status Begin(PerfRecording& recording) {
    if (!options_.snapshot) {
      CLEW_ASSIGN_OR_RETURN(made, recording.NewCapture(files_, perf_data_));
      capture_.emplace(std::move(made));
    }
    if (process_ != 0) {
      CLEW_RETURN_IF_ERROR(
          recording.session().WakeFor(program_ ? program_->ended() : ended_));
    }
    if (options_.inputs != nullptr) {
      CLEW_RETURN_IF_ERROR(
          options_.inputs->Open(process_, /*from_exec=*/program_.has_value(),
                                recording.clock().has_value()));
    }
    started_ = Clock::now();
    return program_ ? BeginLaunched(*program_) : BeginAttached(recording);
  }

  Status BeginLaunched(HeldProgram& program) {
    CLEW_RETURN_IF_ERROR(StartInputs());
    const auto go = [&program] { program.Go(); };
    if (options_.start == nullptr) {
      go();
      return {};
    }
    CLEW_ASSIGN_OR_RETURN(status, options_.start->Launch(process_, go));
    if (status) {
      program.NoteEnd(*status);
    }
    return {};
  }

  // Without a start it is still a recording that can be decoded.
  bool StopForStart() {
    if (options_.start == nullptr) {
      return false;
    }
    const Status stopped = options_.start->Stop(process_);
    if (!stopped) {
      no_start_ = stopped.error().message;
    }
    return stopped.has_value();
  }

  Status BeginAttached(PerfRecording& recording) {
    const bool stopped = StopForStart();
    CLEW_RETURN_IF_ERROR(StartInputs());
    CLEW_RETURN_IF_ERROR(recording.session().Enable());
    if (!options_.snapshot) {
      CLEW_RETURN_IF_ERROR(AddRunning());
    }
    if (stopped) {
      CLEW_RETURN_IF_ERROR(options_.start->LetGo());
      is_changed_ = true;
      stopped_ms_ = static_cast<uint64_t>(
          std::chrono::duration_cast<milliseconds>(Clock::now() - started_)
              .count());
    }
    return {};
  }

  Status StartInputs() {
    return options_.inputs == nullptr ? Status() : options_.inputs->Start();
  }

  // What was done to a process that goes on.
  void GiveBack() {
    if (!is_changed_ || HasEnded(ended_)) {
      return;
    }
    const Status given = options_.start->GiveBack();
    if (!given && !HasEnded(ended_)) {
      not_given_back_ = given.error().message;
    }
  }

  Status AddRunning() {
    return AddProcesses(scanner_.Scan(Processes(), &run_.held), capture());
  }

  // True once the recording is to end.
  Result<bool> IsOver() {
    if (program_) {
      CLEW_ASSIGN_OR_RETURN(status, program_->TryWait());
      if (status) {
        Judge(*status);
        return true;
      }
    } else if (process_ != 0 && HasEnded(ended_)) {
      return true;
    }
    if (options_.stop != nullptr && *options_.stop != 0) {
      return true;
    }
    const bool late =
        options_.seconds > 0 &&
        Clock::now() - started_ >= std::chrono::seconds(options_.seconds);
    return late && (!program_ || AbortHung(*program_));
  }

  // A hang: SIGABRT, so that there is a core dump; SIGKILL if that does not
  // help. False while it is still ending.
  bool AbortHung(const HeldProgram& program) {
    if (!aborted_at_) {
      aborted_at_ = Clock::now();
      program.Kill(SIGABRT);
    } else if (Clock::now() - *aborted_at_ > kDumpGrace) {
      program.Kill(SIGKILL);
    }
    return false;
  }

  void Judge(int status) {
    Failure& failure = run_.failure;
    dumped_core_ = WIFSIGNALED(status) && WCOREDUMP(status);
    failure.thread = Tid(process_);
    if (WIFSIGNALED(status)) {
      failure.kind = FailureKind::kSignal;
      failure.signal = WTERMSIG(status);
    } else {
      failure.exit_status = WEXITSTATUS(status);
      if (options_.fail_on.Matches(failure.exit_status, false)) {
        failure.kind = FailureKind::kExit;
      }
    }
    if (aborted_at_) {
      failure.kind = FailureKind::kTimeLimit;
    }
  }

  Status UntilEnd(PerfRecording& recording) {
    auto next_turn = Clock::now() + kTurn;
    while (true) {
      CLEW_ASSIGN_OR_RETURN(over, IsOver());
      if (over) {
        return {};
      }
      if (options_.inputs != nullptr) {
        CLEW_RETURN_IF_ERROR(options_.inputs->Check());
      }
      const auto left =
          std::chrono::duration_cast<milliseconds>(next_turn - Clock::now());
      CLEW_RETURN_IF_ERROR(recording.session().Wait(
          static_cast<int>(std::max(left, milliseconds(1)).count())));
      if (!options_.snapshot) {
        CLEW_RETURN_IF_ERROR(recording.Drain(capture()));
      }
      if (Clock::now() >= next_turn) {
        next_turn = Clock::now() + kTurn;
        CLEW_RETURN_IF_ERROR(Turn(recording));
      }
    }
  }

  Status Turn(PerfRecording& recording) {
    if (program_ && !std::exchange(enabled_, true)) {
      // Its execve enabled the events that there are; this is for CPUs that
      // come.
      CLEW_RETURN_IF_ERROR(recording.session().Enable());
    }
    if (options_.snapshot && program_) {
      // At its end it is too late to look at it.
      last_seen_ = scanner_.Scan(Processes());
    }
    return recording.FollowCores(capture_ ? &*capture_ : nullptr);
  }

  Status End(PerfRecording& recording) {
    if (!options_.snapshot) {
      CLEW_RETURN_IF_ERROR(recording.session().Disable());
      // After the trace: what the trace has an end of has its inputs.
      CLEW_RETURN_IF_ERROR(EndInputs());
      return recording.FinishFull(capture());
    }
    CLEW_ASSIGN_OR_RETURN(made, recording.NewCapture(files_, perf_data_));
    capture_.emplace(std::move(made));
    CLEW_RETURN_IF_ERROR(recording.TakeSnapshot(capture()));
    CLEW_RETURN_IF_ERROR(recording.session().Disable());
    return program_ ? AddProcesses(last_seen_, capture()) : AddRunning();
  }

  // REQUIRES: there is one, from Begin on or, of a snapshot, at the End.
  PerfCapture& capture() {
    CLEW_CHECK(capture_, "there is no capture");
    return *capture_;
  }

  Status EndInputs() {
    if (options_.inputs != nullptr) {
      CLEW_ASSIGN_OR_RETURN(unknown, options_.inputs->Finish());
      run_.inputs_unknown = unknown;
      run_.unlogged_inputs = {kNotTapped};
    }
    return {};
  }

  perf::PerfKernel& kernel_;
  FileSystem& files_;
  const PerfRecordOptions& options_;
  const std::string& perf_data_;
  ProcessScanner scanner_;
  PerfRun run_;
  std::optional<HeldProgram> program_;
  Fd ended_;             // of the process attached to
  int32_t process_ = 0;  // 0: not one alone
  std::string cgroup_;   // its folder; empty: none
  std::optional<PerfCapture> capture_;
  std::vector<ScannedProcess> last_seen_;
  bool is_changed_ = false;  // by options_.start, and runs
  uint64_t stopped_ms_ = 0;
  std::string no_start_;
  std::string not_given_back_;
  Clock::time_point started_;
  std::optional<Clock::time_point> aborted_at_;
  bool enabled_ = false;
  bool dumped_core_ = false;
};

}  // namespace

Result<PerfRecorded> RecordWithPerf(perf::PerfKernel& kernel, FileSystem& files,
                                    const PerfRecordOptions& options,
                                    const std::string& perf_data) {
  return Recorder(kernel, files, options, perf_data).Run();
}

}  // namespace clew::recorder
