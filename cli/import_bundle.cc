#include "cli/import_bundle.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "decoder/perf_data/cpu_id.h"
#include "decoder/unzstd.h"

namespace clew::cli {
namespace {

using decoder::CoreDump;
using decoder::ImageMatch;
using decoder::ImageSearch;
using decoder::PerfData;
using decoder::PtInfoRecord;
using decoder::Trace;
using recorder::BundleWriter;
using recorder::ImportedImage;
using recorder::ImportedRun;

constexpr size_t kCoresMax = 65536;    // of a manifest
constexpr size_t kNameBytesMax = 255;  // of a file, NAME_MAX
// signal(7), action "Core".
constexpr std::array kCoreSignals = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT,
                                     SIGBUS,  SIGFPE, SIGSEGV, SIGXCPU,
                                     SIGXFSZ, SIGSYS};

// An open file to copy from.
class Input {
 public:
  static Result<Input> Open(const std::string& path) {
    if (path == "-") {
      return Input(STDIN_FILENO, "standard input", 0);
    }
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      return SystemError(errno, fmt::format("cannot open {:?}", path));
    }
    Input input(fd, path, 0);
    struct stat info = {};
    if (fstat(fd, &info) != 0) {
      return SystemError(errno, fmt::format("cannot stat {:?}", path));
    }
    if (S_ISDIR(info.st_mode)) {
      return InvalidArgument(
          "{:?} is a folder, as 'perf record --threads' writes; record without "
          "--threads",
          path);
    }
    input.is_regular_ = S_ISREG(info.st_mode);
    input.size_bytes_ = static_cast<uint64_t>(info.st_size);
    return input;
  }
  Input(Input&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        name_(std::move(other.name_)),
        size_bytes_(other.size_bytes_),
        is_regular_(other.is_regular_) {}
  Input& operator=(Input&&) = delete;
  ~Input() {
    if (fd_ > STDIN_FILENO) {
      close(fd_);
    }
  }

  int fd() const { return fd_; }
  const std::string& name() const { return name_; }
  uint64_t size_bytes() const { return size_bytes_; }  // 0: not known
  bool is_regular() const { return is_regular_; }

 private:
  Input(int fd, std::string name, uint64_t size_bytes)
      : fd_(fd), name_(std::move(name)), size_bytes_(size_bytes) {}
  int fd_;
  std::string name_;
  uint64_t size_bytes_;
  bool is_regular_ = false;
};

uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

// Images that the manifest can name: those with a build-id and a file's name.
std::vector<ImportedImage> NamedImages(const std::vector<ImageMatch>& matches) {
  std::vector<ImportedImage> images;
  for (const ImageMatch& match : matches) {
    const std::string name = match.path.substr(match.path.rfind('/') + 1);
    if (match.build_id.empty() || name.empty() || name == "." || name == ".." ||
        name.size() > kNameBytesMax) {
      continue;
    }
    ImportedImage& image = images.emplace_back();
    image.path = match.path;
    for (const std::byte byte : match.build_id) {
      image.build_id.push_back(static_cast<uint8_t>(byte));
    }
    image.file = match.file;
    image.size_bytes = match.file.empty() ? 0 : SizeOf(match.file);
  }
  return images;
}

uint64_t LostAuxBytes(const Trace& trace) {
  uint64_t bytes = 0;
  for (const decoder::CoreTrace& core : trace.cores()) {
    for (const decoder::AuxPiece& piece : core.pieces) {
      bytes += piece.hole_bytes;
    }
  }
  return bytes;
}

uint64_t LostRecords(const Trace& trace) {
  uint64_t records = 0;
  for (const decoder::SidebandLoss& loss : trace.losses()) {
    records += loss.records;
  }
  return records;
}

// The event's configuration: bits that AUXTRACE_INFO says the place of.
void SetConfiguration(const Trace& trace, ImportedRun& run) {
  const PtInfoRecord& info = trace.pt_info();
  for (const decoder::EventAttr& attr : trace.data().attrs()) {
    if (attr.type == info.pmu_type) {
      run.mtc = (attr.config & info.mtc_bit) != 0;
      run.tsc = (attr.config & info.tsc_bit) != 0;
      run.cyc = (attr.config & info.cyc_bit) != 0;
    }
  }
  run.max_nonturbo_ratio = static_cast<uint32_t>(
      std::min<uint64_t>(info.max_nonturbo_ratio, UINT32_MAX));
  run.snapshot = info.snapshot;
}

void SetTiming(const Trace& trace, ImportedRun& run) {
  run.time_shift = trace.conversion().shift;
  run.time_mult = trace.conversion().mult;
  run.time_zero = trace.conversion().zero;
  run.tsc_ctc_numerator = trace.timing().ctc_numerator;
  run.tsc_ctc_denominator = trace.timing().ctc_denominator;
  run.mtc_period = trace.timing().mtc_period;
}

int32_t SignalOf(const CoreDump& core) {
  const int32_t signal = core.threads().front().signal;
  return signal != 0 || !core.signal() ? signal : core.signal()->signal;
}

void Warn(const CoreDump& core, const Trace& trace, ImportReport& report) {
  const Failure failure = FailureOf(core);
  if (failure.kind == FailureKind::kNone) {
    report.warnings.push_back(fmt::format(
        "the core dump was not made by a failure (signal {})", SignalOf(core)));
  }
  const Tid thread = core.threads().front().thread;
  if (!trace.threads().contains(thread)) {
    report.warnings.push_back(fmt::format(
        "thread {} of the core dump is not in the recording; is it of another "
        "run?",
        thread));
  }
}

// The core dump as it is, plain or in zstd.
Status CopyCore(BundleWriter& bundle, const std::string& path,
                ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(input, Input::Open(path));
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  const char* name = decoder::IsZstd(file.bytes()) ? "core.zst" : "core";
  CLEW_RETURN_IF_ERROR(recorder::CopyInto(bundle, name, input.fd(), path,
                                          input.size_bytes(), progress));
  return {};
}

// Reads the copy, so that what was checked is what the bundle has.
Result<std::unique_ptr<Trace>> LoadCopy(const MappedFile& copy,
                                        const std::string& name,
                                        std::optional<decoder::CpuIdentity> cpu,
                                        ImageSearch& search) {
  CLEW_ASSIGN_OR_RETURN(data, PerfData::Over(copy.bytes(), name));
  decoder::TraceConfig config;
  config.cpu = cpu;
  config.resolve_image = [&search](const decoder::MmapRecord& mapping) {
    return search.Find(mapping).file;
  };
  return Trace::Load(std::move(data), config);
}

// What `perf inject` writes has the features of the host that it ran on.
bool IsInjected(const decoder::PerfFeatures& features) {
  return features.command.size() > 1 && features.command[1] == "inject";
}

Result<std::optional<decoder::CpuIdentity>> CpuOf(const std::string& text) {
  if (text.empty()) {
    return std::optional<decoder::CpuIdentity>();
  }
  const auto cpu = decoder::ParseCpuId(text);
  if (!cpu.is_intel) {
    return InvalidArgument(
        "no CPU with Intel PT: {:?}; wanted as perf names it, "
        "GenuineIntel,6,78,3",
        text);
  }
  return std::optional(cpu);
}

ImportReport Report(const Trace& trace, const ImageSearch& search,
                    const CoreDump* core) {
  ImportReport report;
  report.pipe_format = trace.data().is_pipe();
  for (const decoder::CoreTrace& of : trace.cores()) {
    report.pt_bytes += of.bytes;
  }
  report.slices = trace.slices().size();
  report.records = trace.RecordCounts();
  report.images = search.matches();
  report.run = DescribeRun(trace, search.matches(), core);
  report.has_core = core != nullptr;
  report.warnings = trace.data().feature_faults();
  if (report.pt_bytes == 0) {
    report.warnings.push_back("there are no bytes of Intel PT in it");
  }
  if (core != nullptr) {
    Warn(*core, trace, report);
  }
  return report;
}

}  // namespace

Failure FailureOf(const CoreDump& core) {
  const decoder::CoreThread& thread = core.threads().front();
  const int32_t signal = SignalOf(core);
  Failure failure;
  if (std::ranges::find(kCoreSignals, signal) == kCoreSignals.end()) {
    return failure;
  }
  failure.kind = FailureKind::kSignal;
  failure.signal = signal;
  failure.thread = thread.thread;
  failure.ip = thread.rip;
  // Only of a fault that the kernel raised does si_addr tell an access.
  const auto& info = core.signal();
  if (info && info->signal == signal && info->code > 0 &&
      (signal == SIGSEGV || signal == SIGBUS)) {
    failure.addr = info->addr;
  }
  return failure;
}

ImportedRun DescribeRun(const Trace& trace,
                        const std::vector<ImageMatch>& images,
                        const CoreDump* core) {
  ImportedRun run;
  const decoder::CpuIdentity& cpu = trace.cpu();
  run.cpu_is_intel = cpu.is_intel;
  run.cpu_family = cpu.family;
  run.cpu_model = cpu.model;
  run.cpu_stepping = cpu.stepping;
  run.cores = static_cast<uint32_t>(trace.cores().size());
  SetTiming(trace, run);
  SetConfiguration(trace, run);
  const decoder::PerfFeatures& features = trace.data().features();
  run.host = features.host;
  run.os_release = features.os_release;
  run.cpu_description = features.cpu_description;
  run.perf_version = features.perf_version;
  run.command = features.command;
  run.lost_aux_bytes = LostAuxBytes(trace);
  run.lost_records = LostRecords(trace);
  run.images = NamedImages(images);
  if (core != nullptr) {
    run.failure = FailureOf(*core);
    run.core_registers_exact = run.failure.kind == FailureKind::kSignal;
  }
  return run;
}

Result<ImportReport> ImportBundle(FileSystem& files,
                                  const ImportOptions& options,
                                  ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(input, Input::Open(options.perf_data));
  if (input.is_regular()) {
    // Refuses what is no perf.data before gigabytes of it are copied.
    CLEW_RETURN_IF_ERROR(PerfData::Open(options.perf_data));
  }
  std::optional<CoreDump> core;
  if (!options.core.empty()) {
    CLEW_ASSIGN_OR_RETURN(opened, CoreDump::Open(options.core));
    core = std::move(opened);
  }
  CLEW_ASSIGN_OR_RETURN(cpu, CpuOf(options.cpu));
  CLEW_ASSIGN_OR_RETURN(search, ImageSearch::Create(options.image_folders));
  CLEW_ASSIGN_OR_RETURN(bundle, BundleWriter::Create(files, options.output));
  CLEW_ASSIGN_OR_RETURN(
      bytes, recorder::CopyInto(bundle, "perf.data", input.fd(), input.name(),
                                input.size_bytes(), progress));
  CLEW_ASSIGN_OR_RETURN(copy, MappedFile::Open(bundle.folder() + "/perf.data"));
  CLEW_ASSIGN_OR_RETURN(trace, LoadCopy(copy, input.name(), cpu, search));
  if (trace->cores().size() > kCoresMax) {
    return CorruptInput("{}: PT of {} cores, wanted at most {}", input.name(),
                        trace->cores().size(), kCoresMax);
  }
  if (core) {
    CLEW_RETURN_IF_ERROR(CopyCore(bundle, options.core, progress));
  }
  ImportReport report = Report(*trace, search, core ? &*core : nullptr);
  report.perf_data_bytes = bytes;
  if (!cpu && IsInjected(trace->data().features())) {
    report.warnings.push_back(fmt::format(
        "written by perf inject, which names the host it ran on and its CPU "
        "({:?}); wrong errata make gaps: give the recording one with --cpu",
        trace->data().features().cpu_id));
  }
  CLEW_RETURN_IF_ERROR(recorder::WriteImport(bundle, report.run));
  CLEW_RETURN_IF_ERROR(bundle.Publish());
  return report;
}

}  // namespace clew::cli
