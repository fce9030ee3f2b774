#include <limits>
#include <string_view>

#include "bundle/manifest/convert_manifest.h"
#include "common/build_id.h"
#include "common/bytes.h"
#include "common/text/hex.h"
#include "common/text/path_names.h"

namespace clew::bundle {
namespace {

// Checks one numeric field.
template <class Int>
Status CheckAtMost(const std::string& where, std::string_view field, Int value,
                   Int max) {
  if (value > max) {
    return CorruptInput("{}: {} is {}, wanted at most {}", where, field, value,
                        max);
  }
  return {};
}

Result<BundleSource> ToSource(pb::Manifest::Source source,
                              const std::string& where) {
  switch (source) {
    case pb::Manifest::SOURCE_UNKNOWN:
      return BundleSource::kUnknown;
    case pb::Manifest::SOURCE_PERF:
      return BundleSource::kPerf;
    case pb::Manifest::SOURCE_QEMU:
      return BundleSource::kQemu;
    case pb::Manifest::SOURCE_STEPPER:
      return BundleSource::kStepper;
    case pb::Manifest::SOURCE_IMPORTED:
      return BundleSource::kImported;
    case pb::Manifest::SOURCE_TRACER:
      return BundleSource::kTracer;
    case pb::Manifest::SOURCE_TRACER_FREE:
      return BundleSource::kTracerFree;
    default:
      return CorruptInput("{}: source is {}, wanted 0..6", where,
                          static_cast<int>(source));
  }
}

Result<FailureKind> ToFailureKind(pb::Failure::Kind kind,
                                  const std::string& where) {
  switch (kind) {
    case pb::Failure::KIND_NONE:
      return FailureKind::kNone;
    case pb::Failure::KIND_SIGNAL:
      return FailureKind::kSignal;
    case pb::Failure::KIND_EXIT:
      return FailureKind::kExit;
    case pb::Failure::KIND_HANG:
      return FailureKind::kHang;
    case pb::Failure::KIND_TIME_LIMIT:
      return FailureKind::kTimeLimit;
    default:
      return CorruptInput("{}: failure.kind is {}, wanted 0..4", where,
                          static_cast<int>(kind));
  }
}

Result<Failure> ToFailure(const pb::Failure& from, const std::string& where) {
  CLEW_ASSIGN_OR_RETURN(kind, ToFailureKind(from.kind(), where));
  if (from.signal() < 0 || from.signal() > 64) {
    return CorruptInput("{}: failure.signal is {}, wanted 0..64", where,
                        from.signal());
  }
  return Failure{.kind = kind,
                 .signal = from.signal(),
                 .exit_status = from.exit_status(),
                 .thread = Tid(from.thread()),
                 .ip = TraceeAddr(from.ip()),
                 .addr = TraceeAddr(from.addr())};
}

Result<CpuIdentity> ToCpu(const pb::Cpu& from, const std::string& where) {
  CLEW_RETURN_IF_ERROR(
      CheckAtMost(where, "cpu.family", from.family(), 0xffffu));
  CLEW_RETURN_IF_ERROR(CheckAtMost(where, "cpu.model", from.model(), 0xffu));
  CLEW_RETURN_IF_ERROR(
      CheckAtMost(where, "cpu.stepping", from.stepping(), 0xffu));
  return CpuIdentity{.is_intel = from.vendor() == pb::Cpu::VENDOR_INTEL,
                     .family = static_cast<uint16_t>(from.family()),
                     .model = static_cast<uint8_t>(from.model()),
                     .stepping = static_cast<uint8_t>(from.stepping())};
}

// The base name becomes part of a path: it must not lead out of the bundle.
Result<BundleImage> ToImage(const pb::Image& from, const std::string& where,
                            const std::string& bundle_path) {
  const std::string name = ImageFileName(from.path());
  if (!IsImageFileName(name)) {
    return CorruptInput("{}: image path is {:?}, wanted a file's", where,
                        from.path());
  }
  if (from.build_id().empty() || from.build_id().size() > kImageIdBytesMax) {
    return CorruptInput("{}: build_id of {:?} has {} bytes, wanted 1..{}",
                        where, from.path(), from.build_id().size(),
                        kImageIdBytesMax);
  }
  BundleImage image;
  image.path = from.path();
  image.build_id = ToBytes(from.build_id());
  image.has_build_id = from.has_build_id();
  image.not_verified = from.not_verified();
  image.size_bytes = from.size_bytes();
  image.file =
      fmt::format("{}/images/{}/{}", bundle_path, ToHex(from.build_id()), name);
  return image;
}

Result<TscConversion> ToConversion(const pb::Timing& from,
                                   const std::string& where) {
  CLEW_RETURN_IF_ERROR(
      CheckAtMost(where, "timing.time_shift", from.time_shift(), 63u));
  CLEW_RETURN_IF_ERROR(
      CheckAtMost(where, "timing.mtc_period", from.mtc_period(), 15u));
  return TscConversion{.shift = from.time_shift(),
                       .mult = from.time_mult() == 0 ? 1 : from.time_mult(),
                       .zero = from.time_zero()};
}

PtTiming ToTiming(const pb::Timing& from) {
  return {.tsc_ctc_numerator = from.tsc_ctc_numerator(),
          .tsc_ctc_denominator = from.tsc_ctc_denominator(),
          .mtc_period = from.mtc_period(),
          .mtc = from.mtc(),
          .tsc = from.tsc(),
          .cyc = from.cyc(),
          .max_nonturbo_ratio = from.max_nonturbo_ratio()};
}

BundleOrigin ToOrigin(const pb::Origin& from) {
  return {.host = from.host(),
          .os_release = from.os_release(),
          .cpu = from.cpu(),
          .perf_version = from.perf_version(),
          .snapshot = from.snapshot()};
}

Result<TriggerKind> ToTriggerKind(pb::Trigger::Kind kind,
                                  const std::string& where) {
  if (!pb::Trigger::Kind_IsValid(kind)) {
    return CorruptInput("{}: trigger.kind is {}, wanted 0..{}", where,
                        static_cast<int>(kind),
                        static_cast<int>(TriggerKind::kLast));
  }
  return static_cast<TriggerKind>(kind);
}

Result<Trigger> ToTrigger(const pb::Trigger& from, const std::string& where) {
  CLEW_ASSIGN_OR_RETURN(kind, ToTriggerKind(from.kind(), where));
  return Trigger{.kind = kind,
                 .unit = from.unit(),
                 .process = from.process(),
                 .at_ns = from.at_ns(),
                 .not_saved = from.not_saved()};
}

Result<Sufficiency> ToSufficiency(const pb::Sufficiency& from,
                                  const std::string& where) {
  CLEW_RETURN_IF_ERROR(
      CheckAtMost(where, "sufficiency.score", from.score(), 100u));
  return Sufficiency{.score = from.score(),
                     .decodes = from.decodes(),
                     .images_missing = from.images_missing(),
                     .gaps = from.gaps(),
                     .gaps_at_failure = from.gaps_at_failure(),
                     .reasons = {from.reasons().begin(), from.reasons().end()}};
}

Journal ToJournal(const pb::Manifest& from) {
  Journal journal{.lines = {}, .why = from.no_journal()};
  for (const pb::JournalLine& line : from.journal()) {
    journal.lines.push_back({.at_us = line.at_us(),
                             .process = line.process(),
                             .unit = line.unit(),
                             .program = line.program(),
                             .priority = line.priority(),
                             .message = line.message()});
  }
  return journal;
}

RunSettings ToSettings(const pb::Settings& from) {
  return {.arguments = {from.arguments().begin(), from.arguments().end()},
          .surroundings = {.program = from.program(),
                           .working_directory = from.working_directory(),
                           .environment = {from.environment().begin(),
                                           from.environment().end()},
                           .stack_limit_bytes = from.stack_limit_bytes()},
          .psb_period_bytes = from.psb_period_bytes(),
          .fail_on = from.fail_on(),
          .timeout_s = from.timeout_s(),
          .size_limit_bytes = from.size_limit_bytes()};
}

}  // namespace

Result<Manifest> ToManifest(const pb::Manifest& from, const std::string& where,
                            const std::string& bundle_path) {
  if (from.format_version() == 0) {
    return CorruptInput("{}: format_version is 0 or absent, wanted {}", where,
                        kFormatVersion);
  }
  if (from.format_version() > kFormatVersion) {
    return Unsupported(
        "{}: format_version is {}, this clew reads up to {}; use a newer clew",
        where, from.format_version(), kFormatVersion);
  }
  CLEW_ASSIGN_OR_RETURN(source, ToSource(from.source(), where));
  CLEW_ASSIGN_OR_RETURN(cpu, ToCpu(from.cpu(), where));
  CLEW_ASSIGN_OR_RETURN(conversion, ToConversion(from.timing(), where));
  CLEW_ASSIGN_OR_RETURN(failure, ToFailure(from.failure(), where));
  CLEW_RETURN_IF_ERROR(
      CheckAtMost(where, "cpu.cores", from.cpu().cores(), kManifestCoresMax));
  Manifest manifest;
  manifest.producer = from.producer();
  manifest.source = source;
  manifest.cpu = cpu;
  manifest.core_count = from.cpu().cores();
  manifest.clock_slack_ticks = from.timing().clock_slack_ticks();
  manifest.conversion = conversion;
  manifest.timing = ToTiming(from.timing());
  manifest.command.assign(from.command().begin(), from.command().end());
  manifest.working_directory = from.working_directory();
  manifest.recorded_at_s = from.recorded_at_s();
  manifest.failure = failure;
  manifest.lost_aux_bytes = from.loss().aux_bytes();
  manifest.lost_records = from.loss().records();
  manifest.inputs_unknown = from.loss().inputs_unknown();
  manifest.seed = from.seed();
  manifest.quantum_insns = from.quantum_insns();
  manifest.core_registers_exact = from.core_registers_exact();
  manifest.origin = ToOrigin(from.origin());
  if (from.has_trigger()) {
    CLEW_ASSIGN_OR_RETURN(trigger, ToTrigger(from.trigger(), where));
    manifest.trigger = std::move(trigger);
  }
  if (from.has_sufficiency()) {
    CLEW_ASSIGN_OR_RETURN(found, ToSufficiency(from.sufficiency(), where));
    manifest.sufficiency = std::move(found);
  }
  manifest.redactions.assign(from.redactions().begin(),
                             from.redactions().end());
  manifest.unlogged_inputs.assign(from.unlogged_inputs().begin(),
                                  from.unlogged_inputs().end());
  manifest.deviations.assign(from.deviations().begin(),
                             from.deviations().end());
  manifest.assertion = from.assertion();
  manifest.trace_dropped = from.trace_dropped();
  manifest.assertion = from.assertion();
  manifest.journal = ToJournal(from);
  if (from.has_settings()) {
    manifest.settings = ToSettings(from.settings());
  }
  for (const pb::Image& image : from.images()) {
    CLEW_ASSIGN_OR_RETURN(converted, ToImage(image, where, bundle_path));
    manifest.images.push_back(std::move(converted));
  }
  return manifest;
}

}  // namespace clew::bundle
