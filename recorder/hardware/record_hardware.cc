#include "recorder/hardware/record_hardware.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "bundle/core_dump/core_dump.h"
#include "bundle/core_dump/dump_failure.h"
#include "bundle/manifest/bundle_writer.h"
#include "recorder/core_pattern.h"
#include "recorder/native/attached_start.h"
#include "recorder/native/exec_start.h"
#include "recorder/qemu/plugin_config.h"

namespace clew::recorder {
namespace {

using bundle::BundleWriter;
using bundle::CoreDump;
using bundle::DumpThread;
using bundle::FailureOf;

bool HasThread(const CoreDump& core, Tid thread) {
  for (const DumpThread& of : core.threads()) {
    if (of.thread == thread) {
      return true;
    }
  }
  return false;
}

// The dump at `path`, if it is of this run.
Result<CoreDump> OpenCore(const std::string& path, const PerfRun& run) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    return SystemError(errno, fmt::format("there is no core dump {:?}", path));
  }
  if (info.st_mtime < run.started_at_s) {
    return InvalidArgument("{:?} is older than the recording", path);
  }
  CLEW_ASSIGN_OR_RETURN(core, CoreDump::Open(path));
  // The main thread has the number of the process.
  if (!HasThread(core, run.failure.thread)) {
    return InvalidArgument("{:?} is of another process", path);
  }
  return std::move(core);
}

Status CopyFile(BundleWriter& bundle, const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    return SystemError(errno, fmt::format("cannot open {:?}", path));
  }
  CLEW_RETURN_IF_ERROR(bundle.CopyFrom("core", fd.get(), path, 0, nullptr));
  return {};
}

// What the core dump of a launched program tells about its failure.
Status TakeCore(BundleWriter& bundle, const std::string& proc,
                PerfRecorded& recorded) {
  PerfRun& run = recorded.run;
  CLEW_ASSIGN_OR_RETURN(
      path,
      CorePath(proc, {.process = run.failure.thread.as_int(),
                      .signal = run.failure.signal,
                      .program = run.command.empty() ? "" : run.command.front(),
                      .working_directory = run.working_directory}));
  CLEW_ASSIGN_OR_RETURN(core, OpenCore(path, run));
  CLEW_RETURN_IF_ERROR(CopyFile(bundle, path));
  const Failure told = FailureOf(core);
  if (told.kind == FailureKind::kSignal) {
    const FailureKind kind = run.failure.kind;  // a time limit stays one
    run.failure = told;
    run.failure.kind = kind;
    run.core_registers_exact = true;
  }
  return {};
}

// start.pb of a bundle.
class BundleStart final : public StartTap {
 public:
  BundleStart(FileSystem& files, std::string path)
      : files_(files), path_(std::move(path)) {}

  Result<std::optional<int>> Launch(int32_t process,
                                    const std::function<void()>& go) override {
    return DescribeAtExec(process, go, path_);
  }
  Status Stop(int32_t process) override {
    auto start = AttachedStart::Stop(process, path_);
    if (!start) {  // the recording goes on without
      CLEW_RETURN_IF_ERROR(files_.RemoveAll(path_));
      return std::unexpected(start.error());
    }
    attached_ = std::make_unique<AttachedStart>(std::move(*start));
    return {};
  }
  Status LetGo() override { return attached_->LetGo(); }
  Status GiveBack() override { return attached_->GiveBack(); }

  std::vector<std::byte> vdso() const {
    return attached_ == nullptr ? std::vector<std::byte>() : attached_->vdso();
  }

 private:
  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<AttachedStart> attached_;
};

void WarnOf(const PerfRecorded& recorded, HardwareReport& report) {
  if (!recorded.no_start.empty()) {
    report.warnings.push_back(
        "no start state, so the bundle can be decoded and not solved: " +
        recorded.no_start);
  }
  if (!recorded.not_given_back.empty()) {
    report.warnings.push_back(
        "the process asks the kernel for the time until it ends, which is "
        "slower: its vDSO was not put back: " +
        recorded.not_given_back);
  }
}

}  // namespace

Result<HardwareReport> RecordHardware(
    perf::PerfKernel& kernel, FileSystem& files, const PerfRecordOptions& given,
    const std::optional<InputsOptions>& inputs, const std::string& output) {
  CLEW_ASSIGN_OR_RETURN(bundle, BundleWriter::Create(files, output));
  PerfRecordOptions options = given;
  std::unique_ptr<ReportingTap> tap;
  BundleStart start(files, StartPath(bundle.folder()));
  if (inputs) {
    CLEW_ASSIGN_OR_RETURN(
        made, MakeInputTap(files, InputsPath(bundle.folder()), *inputs));
    tap = std::move(made);
    options.inputs = tap.get();
    options.start = &start;
  }
  CLEW_ASSIGN_OR_RETURN(
      recorded,
      RecordWithPerf(kernel, files, options, bundle.folder() + "/perf.data"));
  HardwareReport report;
  if (tap) {
    report.inputs = tap->report();
    report.has_start = Exists(StartPath(bundle.folder()));
  }
  if (report.has_start) {
    CLEW_RETURN_IF_ERROR(bundle.Sync("start.pb"));
  }
  report.stopped_ms = recorded.stopped_ms;
  WarnOf(recorded, report);
  recorded.run.vdso = start.vdso();
  report.has_pt = recorded.recording.pt_info().has_value();
  if (recorded.dumped_core) {
    const Status core = TakeCore(bundle, options.proc, recorded);
    report.has_core = core.has_value();
    if (!core) {
      report.warnings.push_back("no core dump in the bundle: " +
                                core.error().message);
    }
  }
  // Without PT there is nothing to decode, and a host has many programs.
  recorded.run.images =
      report.has_pt || options.process != 0 || !options.command.empty();
  recorded.run.image_processes = recorded.capture.ProcessesThatRan();
  CLEW_ASSIGN_OR_RETURN(
      images, WritePerfBundle(bundle, recorded.recording, recorded.capture,
                              recorded.run));
  CLEW_RETURN_IF_ERROR(bundle.Publish());
  report.failure = recorded.run.failure;
  report.pt_bytes = recorded.capture.pt_bytes();
  report.counts = recorded.capture.counts();
  report.images = std::move(images);
  return report;
}

}  // namespace clew::recorder
