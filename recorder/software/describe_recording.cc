#include "recorder/software/describe_recording.h"

#include <ctime>

#include "common/os/process_state.h"
#include "recorder/software/repeat.h"

namespace clew::recorder {
namespace {

bundle::BundleSource BundleSourceOf(SoftwareSource source) {
  switch (source) {
    case SoftwareSource::kQemu:
      return bundle::BundleSource::kQemu;
    case SoftwareSource::kStep:
      return bundle::BundleSource::kStepper;
    case SoftwareSource::kTracer:
      return bundle::BundleSource::kTracer;
  }
  return bundle::BundleSource::kUnknown;
}

bundle::PtTiming TimingOf(const EncoderConfig& encoder) {
  return {.tsc_ctc_numerator = encoder.tsc_ctc_numerator,
          .tsc_ctc_denominator = encoder.tsc_ctc_denominator,
          .mtc_period = encoder.mtc_period,
          .mtc = encoder.mtc,
          .tsc = encoder.tsc,
          .cyc = encoder.cyc};
}

}  // namespace

bundle::Manifest DescribeRecording(
    const RecordOptions& options, const PluginConfig& config,
    const Outcome& outcome, const std::vector<bundle::BundleImage>& images) {
  bundle::Manifest manifest;
  manifest.source = options.is_free ? bundle::BundleSource::kTracerFree
                                    : BundleSourceOf(options.source);
  manifest.core_count = config.scheduler.cores;
  manifest.timing = TimingOf(config.encoder);
  manifest.command = options.command;
  if (options.process != 0) {
    manifest.working_directory =
        WorkingDirectoryOf(fmt::format("/proc/{}", options.process));
  } else {
    manifest.settings = SettingsOf(options);
    manifest.working_directory =
        manifest.settings->surroundings.working_directory;
  }
  if (options.make_tap || options.is_free) {
    manifest.settings.reset();  // they do not say how the run comes about
  }
  manifest.recorded_at_s = std::time(nullptr);
  manifest.failure = outcome.failure;
  manifest.images = images;
  manifest.inputs_unknown = outcome.inputs_unknown;
  manifest.seed = config.scheduler.seed;
  manifest.quantum_insns =
      static_cast<uint32_t>(config.scheduler.quantum_insns);
  manifest.core_registers_exact = outcome.registers_exact;
  manifest.unlogged_inputs.assign(outcome.unlogged_inputs.begin(),
                                  outcome.unlogged_inputs.end());
  manifest.deviations = outcome.deviations;
  manifest.trace_dropped = outcome.dropped;
  return manifest;
}

}  // namespace clew::recorder
