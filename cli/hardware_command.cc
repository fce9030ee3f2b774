#include "cli/hardware_command.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "cli/failure_text.h"
#include "cli/report.h"
#include "cli/stop_signals.h"
#include "common/result.h"
#include "recorder/hardware/record_hardware.h"
#include "recorder/perf_target.h"

namespace clew::cli {
namespace {

constexpr const char* kGroup = "Hardware (--source perf)";
constexpr size_t kMissingShownMax = 10;

// Each thread of a process takes an event on each CPU.
void RaiseFileLimit() {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files);  // opening says if it is too low
}

Result<recorder::PerfRecordOptions> ToRecordOptions(
    const HardwareOptions& given) {
  recorder::PerfRecordOptions options;
  options.command = given.command;
  options.process = given.process;
  options.unit = given.unit;
  // Inputs and a start state are of one process.
  if (given.inputs && !given.unit.empty() && given.process == 0) {
    CLEW_ASSIGN_OR_RETURN(process,
                          recorder::ProcessOfUnit(kCgroups, given.unit));
    options.process = process;
    options.unit.clear();
  }
  options.cgroup = given.cgroup;
  options.whole_host = given.whole_host;
  options.snapshot = given.snapshot;
  options.seconds = given.timeout_s;
  if (!given.fail_on.empty()) {
    CLEW_ASSIGN_OR_RETURN(rule, ParseFailOn(given.fail_on));
    options.fail_on = rule;
  }
  const bool has_pt_options = !given.buffer.empty() || given.mtc_period ||
                              given.cyc_threshold || !given.filters.empty();
  if (given.sideband_only) {
    if (has_pt_options) {
      return InvalidArgument(
          "--sideband-only records no PT: leave out --buffer, --mtc-period, "
          "--cyc-threshold and --filter");
    }
    return options;
  }
  recorder::perf::PtOptions pt;
  if (!given.buffer.empty()) {
    CLEW_ASSIGN_OR_RETURN(bytes,
                          recorder::perf::ParseBufferBytes(given.buffer));
    pt.buffer_bytes = bytes;
  }
  pt.snapshot = given.snapshot;
  pt.mtc_period = given.mtc_period;
  pt.cyc_threshold = given.cyc_threshold;
  pt.filters = given.filters;
  options.pt = std::move(pt);
  return options;
}

// The end of a program that was not launched here is not seen.
std::string HowItEnded(const HardwareOptions& options,
                       const recorder::HardwareReport& report) {
  if (!options.command.empty() || report.failure.kind != FailureKind::kNone) {
    return OutcomeText(report.failure);
  }
  return report.has_start
             ? fmt::format("recorded, after it was stopped for {} ms",
                           report.stopped_ms)
             : "recorded";
}

Json ToJson(const HardwareOptions& options,
            const recorder::HardwareReport& report) {
  Json json;
  json["bundle"] = options.output;
  json["failure"] = FailureJson(report.failure);
  json["pt"] = report.has_pt;
  json["pt_bytes"] = report.pt_bytes;
  json["records"] = report.counts.records;
  json["lost_records"] = report.counts.lost_records;
  json["truncations"] = report.counts.truncations;
  json["gaps"] = report.counts.other_gaps;
  json["core"] = report.has_core;
  json["start_state"] = report.has_start;
  json["stopped_ms"] = report.stopped_ms;
  json["inputs"] = report.inputs ? Json{{"calls", report.inputs->calls},
                                        {"unknown", report.inputs->unknown},
                                        {"bytes", report.inputs->bytes}}
                                 : Json();
  json["images"] = report.images.images.size();
  json["image_bytes"] = report.images.image_bytes;
  Json missing = Json::array();
  for (const recorder::MissingImage& image : report.images.missing) {
    missing.push_back({{"path", image.path}, {"why", image.why}});
  }
  json["images_missing"] = std::move(missing);
  return json;
}

void PrintReport(const HardwareOptions& options,
                 const recorder::HardwareReport& report) {
  fmt::print(
      stderr, "clew: {}: {}; {}, {} records, {} images{}{}\n", options.output,
      HowItEnded(options, report),
      report.has_pt
          ? WithMagnitude(static_cast<double>(report.pt_bytes)) + "B of PT"
          : std::string("no PT"),
      report.counts.records, report.images.images.size(),
      report.inputs ? fmt::format(", {} inputs, {} unknown",
                                  report.inputs->calls, report.inputs->unknown)
                    : "",
      report.has_core ? ", core dump" : "");
}

void WarnOf(const recorder::InputsReport& inputs) {
  if (inputs.ring_full > 0) {
    Warn(
        fmt::format("{} calls lost: the ring of inputs was full; a larger "
                    "--inputs-buffer helps",
                    inputs.ring_full));
  }
  if (inputs.over_rate > 0) {
    Warn(
        fmt::format("{} calls lost: more bytes of inputs than --inputs-rate "
                    "allows a second",
                    inputs.over_rate));
  }
}

void WarnOf(const recorder::HardwareReport& report) {
  const recorder::CaptureCounts& counts = report.counts;
  if (report.inputs) {
    WarnOf(*report.inputs);
  }
  if (counts.lost_records > 0) {
    Warn(fmt::format("{} records lost: the rings were full",
                     counts.lost_records));
  }
  if (counts.truncations > 0) {
    Warn(
        fmt::format("PT was cut off {} times: the AUX ring was full; a larger "
                    "--buffer helps",
                    counts.truncations));
  }
  if (counts.other_gaps > 0) {
    Warn(fmt::format("{} gaps in PT, {} bytes", counts.other_gaps,
                     counts.gap_bytes));
  }
  if (counts.mappings_forgotten > 0) {
    Warn(fmt::format("{} mappings more than {}: their images are left out",
                     counts.mappings_forgotten,
                     recorder::PerfCapture::kMappingsMax));
  }
  size_t shown = 0;
  for (const recorder::MissingImage& image : report.images.missing) {
    if (++shown > kMissingShownMax) {
      Warn(fmt::format("{} more images are missing",
                       report.images.missing.size() - kMissingShownMax));
      break;
    }
    Warn(fmt::format("no image of {:?}: {}", image.path, image.why));
  }
  for (const std::string& warning : report.warnings) {
    Warn(warning);
  }
}

// What can be done without PT.
Error Hint(Error error) {
  if (error.code == ErrorCode::kUnsupported &&
      error.message.starts_with("no intel_pt event source")) {
    error.message +=
        "; --sideband-only records threads, switches and mappings alone, and "
        "--source tracer records in software";
  }
  return error;
}

}  // namespace

void AddHardwareOptions(Command& command, HardwareOptions& options) {
  const auto in_group = [](Option* option) { option->group(kGroup); };
  command.add_option("--pid", options.process,
                     "attach to a process, all of its threads, until it fails, "
                     "--timeout is over or Ctrl-C; not with --source qemu");
  command.add_option("--unit", options.unit,
                     "likewise to a systemd unit, by its cgroup; but with "
                     "--source perf it has to be of one process");
  in_group(command.add_option("--cgroup", options.cgroup,
                              "record a cgroup, by its folder"));
  in_group(command.add_flag("--system-wide", options.whole_host,
                            "record every thread of the host"));
  in_group(command.add_option(
      "--buffer", options.buffer,
      "PT per CPU, a power of two like 4M: how much may be written before it "
      "is drained; with --snapshot, how far back a snapshot reaches"));
  in_group(command.add_option(
      "--cyc-threshold", options.cyc_threshold,
      "CYC packets, at least 2^(N-1) cycles apart; none without this"));
  in_group(command.add_option(
      "--filter", options.filters,
      "trace only there: 'filter START/SIZE@FILE', 'start START@FILE' or "
      "'stop START@FILE'"));
  in_group(command.add_flag(
      "--snapshot", options.snapshot,
      "keep overwriting the rings; the bundle has what they hold at the end"));
  in_group(command.add_flag("--sideband-only", options.sideband_only,
                            "no PT: switches, mappings, threads alone"));
  command.add_flag(
      "--inputs", options.inputs,
      "also what comes in from outside: system calls with all that the kernel "
      "wrote, seen by eBPF, and a start state; of a command, of --pid, or of a "
      "--unit of one process; with --source step in the place of what ptrace "
      "sees");
  command.add_option(
      "--inputs-buffer", options.inputs_buffer,
      "where calls wait for the recorder, a power of two from 64K to 1G (4M); "
      "what does not fit is counted in its place and unknown");
  command.add_option(
      "--inputs-rate", options.inputs_rate,
      "bytes of calls and memory a second, from 10K on (64M); what is more is "
      "counted in its place and unknown");
}

Result<std::optional<recorder::InputsOptions>> ToInputsOptions(
    const HardwareOptions& given) {
  if (!given.inputs) {
    if (!given.inputs_buffer.empty() || !given.inputs_rate.empty()) {
      return InvalidArgument(
          "--inputs-buffer and --inputs-rate are of --inputs: give that, too");
    }
    return std::optional<recorder::InputsOptions>();
  }
  recorder::InputsOptions options;
  if (!given.inputs_buffer.empty()) {
    CLEW_ASSIGN_OR_RETURN(bytes, recorder::perf::ParseBytes(
                                     "--inputs-buffer", given.inputs_buffer));
    options.ring_bytes = bytes;
  }
  if (!given.inputs_rate.empty()) {
    CLEW_ASSIGN_OR_RETURN(
        bytes, recorder::perf::ParseBytes("--inputs-rate", given.inputs_rate));
    options.bytes_per_second = bytes;
  }
  return std::optional(options);
}

bool HasHardwareOptions(const Command& command) {
  return command.HasOfGroup(kGroup);
}

int RunHardware(const HardwareOptions& options) {
  auto record = ToRecordOptions(options);
  if (!record) {
    return ReportError(record.error());
  }
  const auto inputs = ToInputsOptions(options);
  if (!inputs) {
    return ReportError(inputs.error());
  }
  record->stop = &CatchStopSignals();
  if (record->process != 0) {
    RaiseFileLimit();
  }
  const auto report = recorder::RecordHardware(recorder::perf::RealPerfKernel(),
                                               PosixFileSystem(), *record,
                                               *inputs, options.output);
  if (!report) {
    return ReportError(Hint(report.error()));
  }
  if (options.json) {
    PrintJson(ToJson(options, *report));
  } else {
    PrintReport(options, *report);
  }
  WarnOf(*report);
  return report->failure.kind == FailureKind::kNone ? kExitOk : kExitFinding;
}

}  // namespace clew::cli
