#include "recorder/import.h"

#include <unistd.h>

#include <cerrno>
#include <set>

#include "common/file.h"
#include "common/hex.h"
#include "common/path_names.h"
#include "proto/bundle.pb.h"
#include "recorder/images.h"
#include "recorder/utf8.h"

namespace clew::recorder {
namespace {

constexpr uint32_t kFormatVersion = 1;
constexpr size_t kCopyBytes = size_t{1} << 20;

void SetCpu(const ImportedRun& run, pb::Cpu& cpu) {
  cpu.set_vendor(run.cpu_is_intel ? pb::Cpu::VENDOR_INTEL
                                  : pb::Cpu::VENDOR_UNKNOWN);
  cpu.set_family(run.cpu_family);
  cpu.set_model(run.cpu_model);
  cpu.set_stepping(run.cpu_stepping);
  cpu.set_cores(run.cores);
}

void SetTiming(const ImportedRun& run, pb::Timing& timing) {
  timing.set_time_shift(run.time_shift);
  timing.set_time_mult(run.time_mult);
  timing.set_time_zero(run.time_zero);
  timing.set_tsc_ctc_numerator(run.tsc_ctc_numerator);
  timing.set_tsc_ctc_denominator(run.tsc_ctc_denominator);
  timing.set_mtc_period(run.mtc_period);
  timing.set_mtc(run.mtc);
  timing.set_tsc(run.tsc);
  timing.set_cyc(run.cyc);
  timing.set_max_nonturbo_ratio(run.max_nonturbo_ratio);
}

void SetOrigin(const ImportedRun& run, pb::Origin& origin) {
  origin.set_host(Utf8(run.host));
  origin.set_os_release(Utf8(run.os_release));
  origin.set_cpu(Utf8(run.cpu_description));
  origin.set_perf_version(Utf8(run.perf_version));
  origin.set_snapshot(run.snapshot);
}

void SetFailure(const Failure& failure, pb::Failure& to) {
  to.set_kind(failure.kind == FailureKind::kSignal ? pb::Failure::KIND_SIGNAL
                                                   : pb::Failure::KIND_NONE);
  to.set_signal(failure.signal);
  to.set_thread(failure.thread.as_int());
  to.set_ip(failure.ip.as_int());
  to.set_addr(failure.addr.as_int());
}

Status CopyImages(BundleWriter& bundle, const ImportedRun& run) {
  CLEW_RETURN_IF_ERROR(bundle.MakeFolder("images"));
  std::set<std::string> made;
  for (const ImportedImage& image : run.images) {
    if (image.file.empty()) {
      continue;
    }
    const std::string folder = "images/" + ToHex(image.build_id);
    if (made.insert(folder).second) {
      CLEW_RETURN_IF_ERROR(bundle.MakeFolder(folder));
    }
    const std::string name = folder + "/" + ImageFileName(Utf8(image.path));
    if (!made.insert(name).second) {
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(image.file));
    if (ImageIdOf(file.bytes()) != image.build_id) {
      return SystemError(
          EBUSY,
          fmt::format("{:?} was replaced during the import; import again",
                      image.file));
    }
    CLEW_RETURN_IF_ERROR(bundle.Write(name, file.bytes()));
  }
  return {};
}

}  // namespace

std::string ImportManifest(const ImportedRun& run) {
  pb::Manifest manifest;
  manifest.set_format_version(kFormatVersion);
  manifest.set_producer("clew " CLEW_VERSION);
  manifest.set_source(pb::Manifest::SOURCE_IMPORTED);
  SetCpu(run, *manifest.mutable_cpu());
  SetTiming(run, *manifest.mutable_timing());
  SetOrigin(run, *manifest.mutable_origin());
  for (const std::string& word : run.command) {
    manifest.add_command(Utf8(word));
  }
  SetFailure(run.failure, *manifest.mutable_failure());
  manifest.set_core_registers_exact(run.core_registers_exact);
  manifest.mutable_loss()->set_aux_bytes(run.lost_aux_bytes);
  manifest.mutable_loss()->set_records(run.lost_records);
  for (const ImportedImage& image : run.images) {
    pb::Image& to = *manifest.add_images();
    to.set_path(Utf8(image.path));
    to.set_build_id(image.build_id.data(), image.build_id.size());
    to.set_has_build_id(image.has_build_id);
    to.set_not_verified(image.not_verified);
    to.set_size_bytes(image.size_bytes);
  }
  return manifest.SerializeAsString();
}

Result<uint64_t> CopyInto(BundleWriter& bundle, const std::string& name, int fd,
                          const std::string& source, uint64_t total,
                          ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(file,
                        bundle.files().Create(bundle.folder() + "/" + name));
  std::vector<std::byte> buffer(kCopyBytes);
  uint64_t copied = 0;
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return SystemError(errno, fmt::format("cannot read {}", source));
    }
    if (got == 0) {
      break;
    }
    const auto bytes = static_cast<size_t>(got);
    CLEW_RETURN_IF_ERROR(file->Append(std::span(buffer).first(bytes)));
    copied += bytes;
    if (progress != nullptr) {
      progress->Update(copied, total);
    }
  }
  CLEW_RETURN_IF_ERROR(file->Sync());
  return copied;
}

Status WriteImport(BundleWriter& bundle, const ImportedRun& run) {
  CLEW_RETURN_IF_ERROR(CopyImages(bundle, run));
  const std::string bytes = ImportManifest(run);
  return bundle.Write("manifest.pb", std::as_bytes(std::span(bytes)));
}

}  // namespace clew::recorder
