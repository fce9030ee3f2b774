#include "bundle/manifest/convert_manifest.h"
#include "common/text/utf8.h"

namespace clew::bundle {
namespace {

pb::Manifest::Source ToProto(BundleSource source) {
  switch (source) {
    case BundleSource::kUnknown:
      return pb::Manifest::SOURCE_UNKNOWN;
    case BundleSource::kPerf:
      return pb::Manifest::SOURCE_PERF;
    case BundleSource::kQemu:
      return pb::Manifest::SOURCE_QEMU;
    case BundleSource::kStepper:
      return pb::Manifest::SOURCE_STEPPER;
    case BundleSource::kImported:
      return pb::Manifest::SOURCE_IMPORTED;
    case BundleSource::kTracer:
      return pb::Manifest::SOURCE_TRACER;
    case BundleSource::kTracerFree:
      return pb::Manifest::SOURCE_TRACER_FREE;
  }
  return pb::Manifest::SOURCE_UNKNOWN;
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

static_assert(pb::Trigger::Kind_MAX == static_cast<int>(TriggerKind::kLast));
pb::Trigger::Kind ToProto(TriggerKind kind) {
  return static_cast<pb::Trigger::Kind>(kind);
}

void SetCpu(const Manifest& from, pb::Cpu& to) {
  to.set_vendor(from.cpu.is_intel ? pb::Cpu::VENDOR_INTEL
                                  : pb::Cpu::VENDOR_UNKNOWN);
  to.set_family(from.cpu.family);
  to.set_model(from.cpu.model);
  to.set_stepping(from.cpu.stepping);
  to.set_cores(from.core_count);
}

void SetTiming(const Manifest& from, pb::Timing& to) {
  to.set_time_shift(from.conversion.shift);
  to.set_time_mult(from.conversion.mult);
  to.set_time_zero(from.conversion.zero);
  to.set_tsc_ctc_numerator(from.timing.tsc_ctc_numerator);
  to.set_tsc_ctc_denominator(from.timing.tsc_ctc_denominator);
  to.set_mtc_period(from.timing.mtc_period);
  to.set_mtc(from.timing.mtc);
  to.set_tsc(from.timing.tsc);
  to.set_cyc(from.timing.cyc);
  to.set_max_nonturbo_ratio(from.timing.max_nonturbo_ratio);
  to.set_clock_slack_ticks(from.clock_slack_ticks);
}

void SetOrigin(const BundleOrigin& from, pb::Origin& to) {
  to.set_host(Utf8(from.host));
  to.set_os_release(Utf8(from.os_release));
  to.set_cpu(Utf8(from.cpu));
  to.set_perf_version(Utf8(from.perf_version));
  to.set_snapshot(from.snapshot);
}

void SetFailure(const Failure& from, pb::Failure& to) {
  to.set_kind(ToProto(from.kind));
  to.set_signal(from.signal);
  to.set_exit_status(from.exit_status);
  to.set_thread(from.thread.as_int());
  to.set_ip(from.ip.as_int());
  to.set_addr(from.addr.as_int());
}

void SetImage(const BundleImage& from, pb::Image& to) {
  to.set_path(Utf8(from.path));
  to.set_build_id(from.build_id.data(), from.build_id.size());
  to.set_has_build_id(from.has_build_id);
  to.set_size_bytes(from.size_bytes);
  to.set_not_verified(from.not_verified);
}

void SetLoss(const Manifest& from, pb::Loss& to) {
  to.set_aux_bytes(from.lost_aux_bytes);
  to.set_records(from.lost_records);
  to.set_inputs_unknown(from.inputs_unknown);
}

void SetSettings(const RunSettings& from, pb::Settings& to) {
  const Surroundings& around = from.surroundings;
  to.set_program(around.program);
  for (const std::string& argument : from.arguments) {
    to.add_arguments(argument);
  }
  to.set_working_directory(around.working_directory);
  for (const std::string& variable : around.environment) {
    to.add_environment(variable);
  }
  to.set_stack_limit_bytes(around.stack_limit_bytes);
  to.set_psb_period_bytes(from.psb_period_bytes);
  to.set_fail_on(Utf8(from.fail_on));
  to.set_timeout_s(from.timeout_s);
  to.set_size_limit_bytes(from.size_limit_bytes);
}

// What is known only after the recording.
void SetLater(const Manifest& from, pb::Manifest& to) {
  if (from.trigger) {
    SetTrigger(*from.trigger, *to.mutable_trigger());
  }
  if (from.sufficiency) {
    SetSufficiency(*from.sufficiency, *to.mutable_sufficiency());
  }
  for (const std::string& line : from.redactions) {
    to.add_redactions(Utf8(line));
  }
  SetJournal(from.journal, to);
}

}  // namespace

void SetTrigger(const Trigger& from, pb::Trigger& to) {
  to.set_kind(ToProto(from.kind));
  to.set_unit(from.unit);
  to.set_process(from.process);
  to.set_at_ns(from.at_ns);
  to.set_not_saved(from.not_saved);
}

void SetSufficiency(const Sufficiency& from, pb::Sufficiency& to) {
  to.set_score(from.score);
  to.set_decodes(from.decodes);
  to.set_images_missing(from.images_missing);
  to.set_gaps(from.gaps);
  to.set_gaps_at_failure(from.gaps_at_failure);
  to.clear_reasons();
  for (const std::string& reason : from.reasons) {
    to.add_reasons(reason);
  }
}

void SetJournal(const Journal& from, pb::Manifest& to) {
  to.clear_journal();
  to.set_no_journal(from.why);
  for (const JournalLine& line : from.lines) {
    pb::JournalLine& added = *to.add_journal();
    added.set_at_us(line.at_us);
    added.set_process(line.process);
    added.set_unit(line.unit);
    added.set_program(line.program);
    added.set_priority(line.priority);
    added.set_message(line.message);
  }
}

pb::Manifest FromManifest(const Manifest& from) {
  pb::Manifest to;
  to.set_source(ToProto(from.source));
  SetCpu(from, *to.mutable_cpu());
  SetTiming(from, *to.mutable_timing());
  for (const std::string& word : from.command) {
    to.add_command(Utf8(word));
  }
  to.set_working_directory(Utf8(from.working_directory));
  to.set_recorded_at_s(from.recorded_at_s);
  SetFailure(from.failure, *to.mutable_failure());
  for (const BundleImage& image : from.images) {
    SetImage(image, *to.add_images());
  }
  SetLoss(from, *to.mutable_loss());
  to.set_seed(from.seed);
  to.set_quantum_insns(from.quantum_insns);
  to.set_core_registers_exact(from.core_registers_exact);
  if (from.origin != BundleOrigin()) {
    SetOrigin(from.origin, *to.mutable_origin());
  }
  for (const std::string& phrase : from.unlogged_inputs) {
    to.add_unlogged_inputs(Utf8(phrase));
  }
  for (const std::string& phrase : from.deviations) {
    to.add_deviations(Utf8(phrase));
  }
  to.set_assertion(Utf8(from.assertion));
  to.set_trace_dropped(Utf8(from.trace_dropped));
  if (from.settings) {
    SetSettings(*from.settings, *to.mutable_settings());
  }
  SetLater(from, to);
  return to;
}

}  // namespace clew::bundle
