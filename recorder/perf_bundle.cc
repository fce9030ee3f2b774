#include "recorder/perf_bundle.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "bundle/manifest/manifest_writer.h"
#include "common/text/path_names.h"
#include "recorder/images/image_store.h"
#include "recorder/images/vdso.h"

namespace clew::recorder {
namespace {

using bundle::BundleImage;
using bundle::BundleWriter;

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
         path.size() - path.rfind('/') - 1 <= kFileNameBytesMax &&
         !path.ends_with('/');
}

struct Candidate {
  const MappedImage* image = nullptr;
  uint64_t size_bytes = 0;
};

std::span<const std::byte> VdsoOf(const PerfRun& run) {
  return run.vdso.empty() ? OwnVdso() : std::span(run.vdso);
}

Result<uint64_t> SizeOf(const MappedImage& image, const PerfRun& run,
                        ImageSource& source) {
  if (image.path == kVdsoPath) {
    return VdsoOf(run).size();
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
    const auto size_bytes = SizeOf(image, run, source);
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
                              const PerfRun& run, ImageSource& source,
                              uint64_t bytes_max) {
  if (image.path == kVdsoPath) {
    return store.StoreVdso(VdsoOf(run), image.build_id);
  }
  return store.Store(source, image, bytes_max);
}

bool Has(const PerfBundleReport& report, const BundleImage& image) {
  return std::ranges::any_of(report.images, [&](const BundleImage& other) {
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
    CLEW_ASSIGN_OR_RETURN(stored, StoreFile(store, *image, run, source, left));
    if (!stored.why.empty()) {
      report.missing.push_back({image->path, stored.why});
    } else if (!Has(report, stored.info)) {
      report.image_bytes += stored.info.size_bytes;
      report.images.push_back(std::move(stored.info));
    }
  }
  return {};
}

CpuIdentity CpuOf(const CpuDescription& host) {
  return {.is_intel = host.is_intel(),
          .family = static_cast<uint16_t>(host.family),
          .model = static_cast<uint8_t>(host.model),
          .stepping = static_cast<uint8_t>(host.stepping)};
}

uint32_t FieldOf(uint64_t config, uint64_t mask) {
  return mask == 0
             ? 0
             : static_cast<uint32_t>((config & mask) >> std::countr_zero(mask));
}

bundle::PtTiming TimingOf(const PerfRecording& recording) {
  const auto& info = recording.pt_info();
  const auto& attr = recording.session().pt_attr();
  if (!info || !attr) {
    return {};
  }
  const uint64_t config = attr->config;
  return {.tsc_ctc_numerator = info->tsc_ctc_numerator,
          .tsc_ctc_denominator = info->tsc_ctc_denominator,
          .mtc_period = FieldOf(config, info->mtc_period_bits),
          .mtc = (config & info->mtc_bit) != 0,
          .tsc = (config & info->tsc_bit) != 0,
          .cyc = (config & info->cyc_bit) != 0,
          .max_nonturbo_ratio = static_cast<uint32_t>(
              std::min<uint64_t>(info->max_nonturbo_ratio, UINT32_MAX))};
}

// Those that were copied, and those that are missing, as far as a build-id
// names them.
std::vector<BundleImage> ListImages(const PerfCapture& capture,
                                    const PerfBundleReport& report) {
  std::vector<BundleImage> list = report.images;
  std::set<std::string> missing;
  for (const MissingImage& image : report.missing) {
    missing.insert(image.path);
  }
  list.reserve(list.size() + missing.size());
  for (const auto& [image, users] : capture.images()) {
    if (missing.contains(image.path) && !image.build_id.empty()) {
      list.push_back({.path = image.path,
                      .build_id = image.build_id,
                      .has_build_id = true});
    }
  }
  return list;
}

bundle::Manifest ManifestOf(const PerfRecording& recording,
                            const PerfCapture& capture, const PerfRun& run,
                            const PerfBundleReport& report) {
  bundle::Manifest manifest;
  manifest.source = bundle::BundleSource::kPerf;
  manifest.cpu = CpuOf(recording.host().cpu);
  manifest.core_count = static_cast<uint32_t>(capture.core_count());
  manifest.conversion = recording.clock().value_or(bundle::TscConversion());
  manifest.timing = TimingOf(recording);
  manifest.command = run.command;
  manifest.working_directory = run.working_directory;
  manifest.recorded_at_s = run.started_at_s;
  manifest.failure = run.failure;
  manifest.core_registers_exact = run.core_registers_exact;
  manifest.lost_aux_bytes = capture.counts().gap_bytes;
  manifest.lost_records = capture.counts().lost_records;
  manifest.inputs_unknown = run.inputs_unknown;
  manifest.unlogged_inputs = run.unlogged_inputs;
  manifest.images = ListImages(capture, report);
  return manifest;
}

}  // namespace

Result<PerfBundleReport> WritePerfBundle(BundleWriter& bundle,
                                         const PerfRecording& recording,
                                         const PerfCapture& capture,
                                         const PerfRun& run) {
  PerfBundleReport report;
  CLEW_RETURN_IF_ERROR(StoreImages(bundle, capture, run, report));
  CLEW_RETURN_IF_ERROR(bundle::WriteManifest(
      bundle, ManifestOf(recording, capture, run, report)));
  return report;
}

}  // namespace clew::recorder
