#include "importer/import_bundle.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "bundle/bundle.h"
#include "bundle/core_dump/dump_failure.h"
#include "bundle/manifest/bundle_writer.h"
#include "bundle/manifest/images.h"
#include "bundle/manifest/manifest_writer.h"
#include "bundle/perf_data/cpu_id.h"
#include "bundle/zstd/unzstd.h"
#include "common/build_id.h"
#include "common/os/scratch_folder.h"
#include "common/text/path_names.h"
#include "importer/input.h"
#include "recorder/images/vdso.h"

namespace clew::importer {
namespace {

using bundle::BundleImage;
using bundle::BundleSource;
using bundle::BundleWriter;
using bundle::CoreDump;
using bundle::EventAttr;
using bundle::FailureOf;
using bundle::IsZstd;
using bundle::kManifestCoresMax;
using bundle::Manifest;
using bundle::ParseCpuId;
using bundle::PerfData;
using bundle::PerfFeatures;
using bundle::PtInfoRecord;
using bundle::PtTiming;
using bundle::SignalOf;
using decoder::ImageMatch;
using decoder::ImageSearch;
using decoder::PerfTrace;

uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

bool HasFileName(const ImageMatch& match) {
  const std::string name = BaseName(match.path);
  return !name.empty() && name != "." && name != ".." &&
         name.size() <= kFileNameBytesMax;
}

// Describes the build of a file that was taken by its path. Returns false if it
// cannot be read any more.
bool DescribeUnverified(BundleImage& image) {
  const auto file = MappedFile::Open(image.file);
  if (!file) {
    return false;
  }
  image.not_verified = true;
  image.has_build_id = !BuildIdOf(file->bytes()).empty();
  image.build_id = ImageIdOf(file->bytes());
  return true;
}

// Images that the manifest can name: those with a file's name, and a build-id
// or a file.
std::vector<BundleImage> NamedImages(const std::vector<ImageMatch>& matches) {
  std::vector<BundleImage> images;
  for (const ImageMatch& match : matches) {
    if (!HasFileName(match)) {
      continue;
    }
    BundleImage image = {.path = match.path,
                         .build_id = match.build_id,
                         .has_build_id = true,
                         .file = match.file};
    if (!image.build_id.empty() || DescribeUnverified(image)) {
      image.size_bytes = image.file.empty() ? 0 : SizeOf(image.file);
      images.push_back(std::move(image));
    }
  }
  return images;
}

uint64_t LostAuxBytes(const PerfTrace& trace) {
  uint64_t bytes = 0;
  for (const decoder::CoreTrace& core : trace.cores()) {
    for (const decoder::AuxPiece& piece : core.pieces) {
      bytes += piece.hole_bytes;
    }
  }
  return bytes;
}

uint64_t LostRecords(const PerfTrace& trace) {
  uint64_t records = 0;
  for (const decoder::SidebandLoss& loss : trace.losses()) {
    records += loss.records;
  }
  return records;
}

// Of the event's configuration, bits that AUXTRACE_INFO says the place of.
PtTiming TimingOf(const PerfTrace& trace) {
  const PtInfoRecord& info = trace.pt_info();
  PtTiming timing = {
      .tsc_ctc_numerator = trace.timing().ctc_numerator,
      .tsc_ctc_denominator = trace.timing().ctc_denominator,
      .mtc_period = trace.timing().mtc_period,
      .max_nonturbo_ratio = static_cast<uint32_t>(
          std::min<uint64_t>(info.max_nonturbo_ratio, UINT32_MAX))};
  for (const EventAttr& attr : trace.data().attrs()) {
    if (attr.type == info.pmu_type) {
      timing.mtc = (attr.config & info.mtc_bit) != 0;
      timing.tsc = (attr.config & info.tsc_bit) != 0;
      timing.cyc = (attr.config & info.cyc_bit) != 0;
    }
  }
  return timing;
}

void Warn(const CoreDump& core, const PerfTrace& trace, ImportReport& report) {
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
  CLEW_ASSIGN_OR_RETURN(input, ImportInput::Open(path));
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  const char* name = IsZstd(file.bytes()) ? "core.zst" : "core";
  CLEW_RETURN_IF_ERROR(
      bundle.CopyFrom(name, input.fd(), path, input.size_bytes(), progress));
  return {};
}

// What another recorder wrote of the run itself.
struct GivenRun {
  std::vector<Tid> threads;  // that there were at the start
  decoder::InputCounts inputs;
};

// Refuses what breaks its format before gigabytes of trace are copied. nullopt:
// none is given.
Result<std::optional<GivenRun>> ReadRun(const ImportOptions& options) {
  if (options.start.empty() != options.inputs.empty()) {
    return InvalidArgument(
        "a start state without inputs, or inputs without a start state: "
        "neither says anything without the other; wanted both, of one run");
  }
  if (options.start.empty()) {
    return std::optional<GivenRun>();
  }
  CLEW_ASSIGN_OR_RETURN(start, bundle::ReadStart(options.start));
  GivenRun run = {.threads = {start.first.thread}, .inputs = {}};
  for (const StartThread& thread : start.others) {
    run.threads.push_back(thread.thread);
  }
  CLEW_ASSIGN_OR_RETURN(inputs, decoder::CountInputs(options.inputs));
  run.inputs = std::move(inputs);
  return std::optional(std::move(run));
}

Status CopyRun(BundleWriter& bundle, const ImportOptions& options,
               ProgressSink* progress) {
  for (const auto& [name, path] : {std::pair("start.pb", options.start),
                                   std::pair("inputs.pb", options.inputs)}) {
    CLEW_ASSIGN_OR_RETURN(input, ImportInput::Open(path));
    CLEW_RETURN_IF_ERROR(
        bundle.CopyFrom(name, input.fd(), path, input.size_bytes(), progress));
  }
  return {};
}

void AddRun(const GivenRun& run, const PerfTrace& trace, ImportReport& report) {
  report.start_threads = run.threads.size();
  report.inputs = run.inputs;
  report.manifest.inputs_unknown = run.inputs.unknown;
  report.manifest.unlogged_inputs.emplace_back(
      "the run was imported, and an input log alone does not tell what its "
      "recorder could not see");
  for (const Tid thread : run.threads) {
    if (!trace.threads().contains(thread)) {
      report.warnings.push_back(fmt::format(
          "thread {} of the start state is not in the recording; is it of "
          "another run?",
          thread));
    }
  }
}

// What `perf inject` writes has the features of the host that it ran on.
bool IsInjected(const PerfFeatures& features) {
  return features.command.size() > 1 && features.command[1] == "inject";
}

// The same of a file of which nothing was read; pipe format has the features
// among its records.
bool IsInjected(const MappedFile& copy, const std::string& name) {
  auto data = PerfData::Over(copy.bytes(), name);
  return data && data->ForEachRecord([](const auto&) { return Status(); }) &&
         IsInjected(data->features());
}

// Why errata may be taken for those of another CPU; empty if they are not.
std::string DoubtOfCpu(const PerfFeatures& features) {
  constexpr const char* kWhatToDo =
      "wrong errata make gaps: give the recording one with --cpu";
  if (IsInjected(features)) {
    return fmt::format(
        "written by perf inject, which names the host it ran on and its CPU "
        "({:?}); {}",
        features.cpu_id, kWhatToDo);
  }
  if (features.cpu_id.empty()) {
    return fmt::format(
        "the recording does not name its CPU, as if perf had been killed; {}",
        kWhatToDo);
  }
  return ParseCpuId(features.cpu_id).is_intel
             ? ""
             : fmt::format(
                   "the CPU that the recording names, {:?}, has no Intel PT; "
                   "{}",
                   features.cpu_id, kWhatToDo);
}

// Reads the copy, so that what was checked is what the bundle has.
Result<std::unique_ptr<PerfTrace>> LoadCopy(const MappedFile& copy,
                                            const std::string& name,
                                            std::optional<CpuIdentity> cpu,
                                            ImageSearch& search) {
  CLEW_ASSIGN_OR_RETURN(data, PerfData::Over(copy.bytes(), name));
  decoder::TraceConfig config;
  config.cpu = cpu;
  config.resolve_image = search.Resolver();
  auto trace = PerfTrace::Load(std::move(data), config);
  if (!trace && trace.error().code == ErrorCode::kUnsupported &&
      IsInjected(copy, name)) {
    return Unsupported(
        "{}: no Intel PT in it: 'perf inject --itrace' decodes the trace and "
        "leaves it out; import the recording that it read",
        name);
  }
  return trace;
}

Result<std::optional<CpuIdentity>> CpuOf(const std::string& text) {
  if (text.empty()) {
    return std::optional<CpuIdentity>();
  }
  const auto cpu = ParseCpuId(text);
  if (!cpu.is_intel) {
    return InvalidArgument(
        "no CPU with Intel PT: {:?}; wanted as perf names it, "
        "GenuineIntel,6,78,3",
        text);
  }
  return std::optional(cpu);
}

// Writes the vDSO that the process had, and this host's, to files for `search`.
Status AddVdsos(const CoreDump* core, const std::string& folder,
                ImageSearch& search) {
  if (core != nullptr && !core->vdso().empty()) {
    const std::string file = folder + "/of-run";
    CLEW_RETURN_IF_ERROR(WriteWholeFile(PosixFileSystem(), file, core->vdso()));
    search.AddVdsoOfRun(file, core->vdso_addr());
  }
  if (!recorder::OwnVdso().empty()) {
    const std::string file = folder + "/of-host";
    CLEW_RETURN_IF_ERROR(
        WriteWholeFile(PosixFileSystem(), file, recorder::OwnVdso()));
    search.AddVdsoOfHost(file);
  }
  return {};
}

ImportReport Report(const PerfTrace& trace, const ImageSearch& search,
                    const CoreDump* core) {
  ImportReport report;
  report.pipe_format = trace.data().is_pipe();
  for (const decoder::CoreTrace& of : trace.cores()) {
    report.pt_bytes += of.bytes;
  }
  report.streams = trace.StreamsText();
  report.slices = trace.slices().size();
  report.records = trace.RecordCounts();
  report.images = search.matches();
  report.manifest = DescribeRun(trace, search.matches(), core);
  report.has_core = core != nullptr;
  report.warnings = trace.data().feature_faults();
  if (const size_t unverified = search.CountUnverified(); unverified > 0) {
    report.warnings.push_back(fmt::format(
        "{} images were taken by path alone, as the recording has no build-ids "
        "of them: what another build decodes to is wrong",
        unverified));
  }
  if (report.pt_bytes == 0) {
    report.warnings.push_back("there are no bytes of Intel PT in it");
  }
  if (core != nullptr) {
    Warn(*core, trace, report);
  }
  return report;
}

}  // namespace

Manifest DescribeRun(const PerfTrace& trace,
                     const std::vector<ImageMatch>& images,
                     const CoreDump* core) {
  const PerfFeatures& features = trace.data().features();
  Manifest manifest;
  manifest.source = BundleSource::kImported;
  manifest.cpu = trace.cpu();
  manifest.core_count = static_cast<uint32_t>(trace.cores().size());
  manifest.conversion = trace.conversion();
  manifest.timing = TimingOf(trace);
  manifest.origin = {.host = features.host,
                     .os_release = features.os_release,
                     .cpu = features.cpu_description,
                     .perf_version = features.perf_version,
                     .snapshot = trace.pt_info().snapshot};
  manifest.command = features.command;
  manifest.lost_aux_bytes = LostAuxBytes(trace);
  manifest.lost_records = LostRecords(trace);
  manifest.images = NamedImages(images);
  if (core != nullptr) {
    manifest.failure = FailureOf(*core);
    manifest.core_registers_exact =
        manifest.failure.kind == FailureKind::kSignal;
  }
  return manifest;
}

Result<ImportReport> ImportBundle(FileSystem& files,
                                  const ImportOptions& options,
                                  ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(input, ImportInput::Open(options.perf_data));
  if (input.is_regular()) {
    // Refuses what is not a perf.data before gigabytes of it are copied.
    CLEW_RETURN_IF_ERROR(PerfData::Open(input.path()));
  }
  std::optional<CoreDump> core;
  if (!options.core.empty()) {
    CLEW_ASSIGN_OR_RETURN(opened, CoreDump::Open(options.core));
    core = std::move(opened);
  }
  CLEW_ASSIGN_OR_RETURN(run, ReadRun(options));
  CLEW_ASSIGN_OR_RETURN(cpu, CpuOf(options.cpu));
  CLEW_ASSIGN_OR_RETURN(search, ImageSearch::Create(options.images));
  CLEW_ASSIGN_OR_RETURN(scratch, ScratchFolder::Make("clew-import"));
  CLEW_RETURN_IF_ERROR(
      AddVdsos(core ? &*core : nullptr, scratch.path(), search));
  CLEW_ASSIGN_OR_RETURN(bundle, BundleWriter::Create(files, options.output));
  CLEW_ASSIGN_OR_RETURN(bytes,
                        bundle.CopyFrom("perf.data", input.fd(), input.path(),
                                        input.size_bytes(), progress));
  CLEW_ASSIGN_OR_RETURN(copy, MappedFile::Open(bundle.folder() + "/perf.data"));
  CLEW_ASSIGN_OR_RETURN(trace, LoadCopy(copy, input.path(), cpu, search));
  if (trace->cores().size() > kManifestCoresMax) {
    return CorruptInput("{}: PT of {} cores, wanted at most {}", input.path(),
                        trace->cores().size(), kManifestCoresMax);
  }
  if (core) {
    CLEW_RETURN_IF_ERROR(CopyCore(bundle, options.core, progress));
  }
  if (run) {
    CLEW_RETURN_IF_ERROR(CopyRun(bundle, options, progress));
  }
  ImportReport report = Report(*trace, search, core ? &*core : nullptr);
  report.perf_data_bytes = bytes;
  if (run) {
    AddRun(*run, *trace, report);
  }
  if (const std::string doubt = DoubtOfCpu(trace->data().features());
      !cpu && !doubt.empty()) {
    report.warnings.push_back(doubt);
  }
  CLEW_RETURN_IF_ERROR(bundle::CopyImages(bundle, report.manifest.images, {}));
  CLEW_RETURN_IF_ERROR(bundle::WriteManifest(bundle, report.manifest));
  CLEW_RETURN_IF_ERROR(bundle.Publish());
  return report;
}

}  // namespace clew::importer
