#include "recorder/perf_bundle.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "common/path_names.h"
#include "proto/bundle.pb.h"
#include "recorder/image_store.h"
#include "recorder/manifest.h"
#include "recorder/utf8.h"
#include "recorder/vdso.h"

namespace clew::recorder {
namespace {

constexpr uint32_t kFormatVersion = 1;
constexpr size_t kNameBytesMax = 255;  // of a file, NAME_MAX

bool IsWanted(const std::set<int32_t>& users, const PerfRun& run) {
  return run.image_processes.empty() ||
         std::ranges::any_of(users, [&run](int32_t process) {
           return run.image_processes.contains(process);
         });
}

// A mapping whose code can be copied: not "//anon", "/memfd:name (deleted)".
bool IsCode(const std::string& path) {
  if (path == kVdsoPath) {
    return true;
  }
  return path.starts_with('/') && !path.starts_with("//") &&
         !path.starts_with("/memfd:") &&
         path.size() - path.rfind('/') - 1 <= kNameBytesMax &&
         !path.ends_with('/');
}

struct Candidate {
  const MappedImage* image = nullptr;
  uint64_t size_bytes = 0;
};

Result<uint64_t> SizeOf(const MappedImage& image, ImageSource& source) {
  if (image.path == kVdsoPath) {
    return OwnVdso().size();
  }
  return source.SizeOf(image);
}

// Smallest first. Files are opened again when they are copied: there may be
// more than a process may have open.
std::vector<Candidate> FindImages(const PerfCapture& capture,
                                  const PerfRun& run, ImageSource& source,
                                  PerfBundleReport& report) {
  std::vector<Candidate> candidates;
  for (const auto& [image, users] : capture.images()) {
    if (!run.images || !IsWanted(users, run) || !IsCode(image.path)) {
      continue;
    }
    const auto size_bytes = SizeOf(image, source);
    if (size_bytes) {
      candidates.push_back({.image = &image, .size_bytes = *size_bytes});
    } else {
      report.missing.push_back({image.path, size_bytes.error().message});
    }
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::size_bytes);
  return candidates;
}

Result<StoredImage> StoreFile(ImageStore& store, const MappedImage& image,
                              ImageSource& source, uint64_t bytes_max) {
  if (image.path == kVdsoPath) {
    return store.StoreVdso(image.build_id);
  }
  return store.Store(source, image, bytes_max);
}

bool Has(const PerfBundleReport& report, const ImageInfo& image) {
  return std::ranges::any_of(report.images, [&](const ImageInfo& other) {
    return other.path == image.path && other.build_id == image.build_id;
  });
}

Status StoreImages(BundleWriter& bundle, const PerfCapture& capture,
                   const PerfRun& run, PerfBundleReport& report) {
  FilesHere here(bundle.files(), &run.held, run.image_rights);
  ImageSource& source = run.image_source == nullptr ? here : *run.image_source;
  CLEW_ASSIGN_OR_RETURN(store, ImageStore::Create(bundle));
  for (const auto& [image, size_bytes] :
       FindImages(capture, run, source, report)) {
    const uint64_t left = run.image_bytes_max - report.image_bytes;
    if (size_bytes > left) {
      report.missing.push_back(
          {image->path,
           fmt::format("more than {} bytes of images", run.image_bytes_max)});
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(stored, StoreFile(store, *image, source, left));
    if (!stored.why.empty()) {
      report.missing.push_back({image->path, stored.why});
    } else if (!Has(report, stored.info)) {
      report.image_bytes += stored.info.size_bytes;
      report.images.push_back(std::move(stored.info));
    }
  }
  return {};
}

void SetCpu(const PerfRecording& recording, const PerfCapture& capture,
            pb::Cpu& cpu) {
  const CpuDescription& host = recording.host().cpu;
  cpu.set_vendor(host.is_intel() ? pb::Cpu::VENDOR_INTEL
                                 : pb::Cpu::VENDOR_UNKNOWN);
  cpu.set_family(host.family);
  cpu.set_model(host.model);
  cpu.set_stepping(host.stepping);
  cpu.set_cores(static_cast<uint32_t>(capture.core_count()));
}

uint32_t FieldOf(uint64_t config, uint64_t mask) {
  return mask == 0
             ? 0
             : static_cast<uint32_t>((config & mask) >> std::countr_zero(mask));
}

void SetTiming(const PerfRecording& recording, pb::Timing& timing) {
  if (const auto& clock = recording.clock()) {
    timing.set_time_shift(clock->shift);
    timing.set_time_mult(clock->mult);
    timing.set_time_zero(clock->zero);
  }
  const auto& info = recording.pt_info();
  const auto& attr = recording.session().pt_attr();
  if (!info || !attr) {
    return;
  }
  const uint64_t config = attr->config;
  timing.set_tsc_ctc_numerator(info->tsc_ctc_numerator);
  timing.set_tsc_ctc_denominator(info->tsc_ctc_denominator);
  timing.set_mtc_period(FieldOf(config, info->mtc_period_bits));
  timing.set_mtc((config & info->mtc_bit) != 0);
  timing.set_tsc((config & info->tsc_bit) != 0);
  timing.set_cyc((config & info->cyc_bit) != 0);
  timing.set_max_nonturbo_ratio(static_cast<uint32_t>(
      std::min<uint64_t>(info->max_nonturbo_ratio, UINT32_MAX)));
}

void AddImages(const PerfCapture& capture, const PerfBundleReport& report,
               pb::Manifest& manifest) {
  std::set<std::string> copied;
  for (const ImageInfo& image : report.images) {
    copied.insert(image.path);
    pb::Image& to = *manifest.add_images();
    to.set_path(Utf8(image.path));
    to.set_build_id(image.build_id.data(), image.build_id.size());
    to.set_has_build_id(image.has_build_id);
    to.set_size_bytes(image.size_bytes);
  }
  // Those that are missing, as far as a build-id names them.
  std::set<std::string> missing;
  for (const MissingImage& image : report.missing) {
    missing.insert(image.path);
  }
  for (const auto& [image, users] : capture.images()) {
    if (missing.contains(image.path) && !image.build_id.empty()) {
      pb::Image& to = *manifest.add_images();
      to.set_path(Utf8(image.path));
      to.set_build_id(image.build_id.data(), image.build_id.size());
      to.set_has_build_id(true);
    }
  }
}

std::string ManifestOf(const PerfRecording& recording,
                       const PerfCapture& capture, const PerfRun& run,
                       const PerfBundleReport& report) {
  pb::Manifest manifest;
  manifest.set_format_version(kFormatVersion);
  manifest.set_producer("clew " CLEW_VERSION);
  manifest.set_source(pb::Manifest::SOURCE_PERF);
  SetCpu(recording, capture, *manifest.mutable_cpu());
  SetTiming(recording, *manifest.mutable_timing());
  for (const std::string& word : run.command) {
    manifest.add_command(Utf8(word));
  }
  manifest.set_working_directory(Utf8(run.working_directory));
  manifest.set_recorded_at_s(run.started_at_s);
  SetFailure(run.failure, *manifest.mutable_failure());
  manifest.set_core_registers_exact(run.core_registers_exact);
  manifest.mutable_loss()->set_aux_bytes(capture.counts().gap_bytes);
  manifest.mutable_loss()->set_records(capture.counts().lost_records);
  manifest.mutable_loss()->set_inputs_unknown(run.inputs_unknown);
  AddImages(capture, report, manifest);
  return manifest.SerializeAsString();
}

}  // namespace

Result<PerfBundleReport> WritePerfBundle(BundleWriter& bundle,
                                         const PerfRecording& recording,
                                         const PerfCapture& capture,
                                         const PerfRun& run) {
  PerfBundleReport report;
  CLEW_RETURN_IF_ERROR(StoreImages(bundle, capture, run, report));
  const std::string bytes = ManifestOf(recording, capture, run, report);
  CLEW_RETURN_IF_ERROR(
      bundle.Write("manifest.pb", std::as_bytes(std::span(bytes))));
  return report;
}

}  // namespace clew::recorder
