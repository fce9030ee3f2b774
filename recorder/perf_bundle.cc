#include "recorder/perf_bundle.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "common/path_names.h"
#include "proto/bundle.pb.h"
#include "recorder/manifest.h"
#include "recorder/utf8.h"

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

// Why it cannot be had; empty if `found` is it.
std::string Find(const MappedImage& image, ImageInfo& found) {
  auto file = DescribeImage(image.path);
  if (!file) {
    return file.error().message;
  }
  if (!image.build_id.empty() && file->build_id != image.build_id) {
    return "the file there now is of another build";
  }
  found = std::move(*file);
  return {};
}

PerfBundleReport FindImages(const PerfCapture& capture, const PerfRun& run) {
  PerfBundleReport report;
  for (const auto& [image, users] : capture.images()) {
    if (!run.images || !IsWanted(users, run) || !IsCode(image.path)) {
      continue;
    }
    ImageInfo found;
    std::string why = Find(image, found);
    if (why.empty()) {
      report.images.push_back(std::move(found));
    } else {
      report.missing.push_back({image.path, std::move(why)});
    }
  }
  return report;
}

bool SamePlace(const ImageInfo& a, const ImageInfo& b) {
  return a.path == b.path && a.build_id == b.build_id;
}

// Keeps the smallest ones within the budget.
void KeepWithin(uint64_t bytes_max, PerfBundleReport& report) {
  auto& images = report.images;
  std::ranges::stable_sort(images, {}, &ImageInfo::size_bytes);
  images.erase(std::unique(images.begin(), images.end(), SamePlace),
               images.end());
  auto keep = images.begin();
  for (; keep != images.end(); ++keep) {
    if (keep->size_bytes > bytes_max - report.image_bytes) {
      break;
    }
    report.image_bytes += keep->size_bytes;
  }
  for (auto left = keep; left != images.end(); ++left) {
    report.missing.push_back(
        {left->path, fmt::format("more than {} bytes of images", bytes_max)});
  }
  images.erase(keep, images.end());
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
  PerfBundleReport report = FindImages(capture, run);
  KeepWithin(run.image_bytes_max, report);
  CLEW_RETURN_IF_ERROR(CopyImages(bundle, report.images));
  const std::string bytes = ManifestOf(recording, capture, run, report);
  CLEW_RETURN_IF_ERROR(
      bundle.Write("manifest.pb", std::as_bytes(std::span(bytes))));
  return report;
}

}  // namespace clew::recorder
