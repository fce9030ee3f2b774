#include "recorder/manifest.h"

#include <ctime>
#include <filesystem>
#include <system_error>

#include "bundle/perf_data/perf_data_writer.h"
#include "proto/bundle.pb.h"

namespace clew::recorder {
namespace {

constexpr uint32_t kFormatVersion = 1;

void SetTiming(const Session& session, pb::Timing& timing) {
  const EncoderConfig& encoder = session.encoder;
  const bundle::TscConversion clock;
  timing.set_time_shift(clock.shift);
  timing.set_time_mult(clock.mult);
  timing.set_time_zero(clock.zero);
  timing.set_tsc_ctc_numerator(encoder.tsc_ctc_numerator);
  timing.set_tsc_ctc_denominator(encoder.tsc_ctc_denominator);
  timing.set_mtc_period(encoder.mtc_period);
  timing.set_mtc(encoder.mtc);
  timing.set_tsc(encoder.tsc);
  timing.set_cyc(encoder.cyc);
}

pb::Failure::Kind ToProto(FailureKind kind) {
  switch (kind) {
    case FailureKind::kNone:
      return pb::Failure::KIND_NONE;
    case FailureKind::kSignal:
      return pb::Failure::KIND_SIGNAL;
    case FailureKind::kExit:
      return pb::Failure::KIND_EXIT;
    case FailureKind::kHang:
      return pb::Failure::KIND_HANG;
    case FailureKind::kTimeLimit:
      return pb::Failure::KIND_TIME_LIMIT;
  }
  return pb::Failure::KIND_NONE;
}

void AddImage(const ImageInfo& image, pb::Image& to) {
  to.set_path(image.path);
  to.set_build_id(image.build_id.data(), image.build_id.size());
  to.set_has_build_id(image.has_build_id);
  to.set_size_bytes(image.size_bytes);
}

std::string WorkingDirectory() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

}  // namespace

void SetFailure(const Failure& failure, pb::Failure& to) {
  to.set_kind(ToProto(failure.kind));
  to.set_signal(failure.signal);
  to.set_exit_status(failure.exit_status);
  to.set_thread(failure.thread.as_int());
  to.set_ip(failure.ip.as_int());
  to.set_addr(failure.addr.as_int());
}

Status WriteManifest(BundleWriter& bundle, const RecordOptions& options,
                     const Session& session, const Outcome& outcome,
                     const std::vector<ImageInfo>& images) {
  pb::Manifest manifest;
  manifest.set_format_version(kFormatVersion);
  manifest.set_producer("clew " CLEW_VERSION);
  manifest.set_source(pb::Manifest::SOURCE_QEMU);
  manifest.mutable_cpu()->set_cores(session.scheduler.cores);
  SetTiming(session, *manifest.mutable_timing());
  for (const std::string& word : options.command) {
    manifest.add_command(word);
  }
  manifest.set_working_directory(WorkingDirectory());
  manifest.set_recorded_at_s(std::time(nullptr));
  SetFailure(outcome.failure, *manifest.mutable_failure());
  for (const ImageInfo& image : images) {
    AddImage(image, *manifest.add_images());
  }
  manifest.mutable_loss()->set_inputs_unknown(outcome.inputs_unknown);
  manifest.set_seed(session.scheduler.seed);
  manifest.set_quantum_insns(
      static_cast<uint32_t>(session.scheduler.quantum_insns));
  manifest.set_core_registers_exact(outcome.registers_exact);
  for (const std::string& phrase : outcome.unlogged_inputs) {
    manifest.add_unlogged_inputs(phrase);
  }
  manifest.set_trace_dropped(outcome.dropped);
  const std::string bytes = manifest.SerializeAsString();
  return bundle.Write("manifest.pb", std::as_bytes(std::span(bytes)));
}

}  // namespace clew::recorder
