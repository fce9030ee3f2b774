#include "recorder/software/record.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "cli/failure_text.h"
#include "cli/hardware_command.h"
#include "cli/repeat_command.h"
#include "cli/report.h"
#include "cli/stop_signals.h"
#include "cli/subcommands.h"
#include "common/fail_on.h"
#include "common/linux/deviations.h"
#include "common/progress.h"
#include "machine/coverage.h"
#include "recorder/perf/event_config.h"
#include "recorder/perf_target.h"
#include "recorder/software/leak_sanitizer.h"
#include "recorder/software/plugin_file.h"
#include "recorder/software/repeat.h"
#include "recorder/software/until_fail.h"

namespace clew::cli {
namespace {

constexpr uint32_t kTriesDefault = 1000;
constexpr size_t kUnknownShownMax = 5;
constexpr uint64_t kRingBytesMin = 256 << 10;

constexpr const char* kRecordFooter =
    R"(Exit status: 0 the run did not fail, 1 it failed (and was recorded), 5 none of
the runs of --until-fail failed. A run has failed if a signal ended it, if it
hangs, if its time limit is over, or by its exit status as --fail-on says: by
default 101 and 2, with which panics end programs in Rust and Go, and any but 0
behind the report of a sanitizer (Address-, Thread-, ...; not with --source
qemu). The program's own output goes where it always goes; clew writes to
stderr how the run ended, and the command that repeats it. With --children a
child fails by a signal that dumps core, by 101 or by a report; by a status
that --fail-on names it fails if the program does.

Examples:
  clew record -o run.clew -- ./server --port 0
  clew record --until-fail -o fail.clew -- ./racey
  clew record --until-fail --jobs 8 -o fail.clew -- ./racey
  clew record --children -o fail.clew -- cargo test           the test itself
  clew record --until-fail 50 --fail-on 'exit!=0' -o fail.clew -- ./test
  clew record --timeout 10 -o hang.clew -- ./deadlock
  clew record --repeat fail.clew -o again.clew
  clew record --seed 7 --quantum 100 --cores 2 -o run.clew -- pbzip2 -p4 -k f
  clew record --free -o run.clew -- ./server                  at its own speed
  clew record --source qemu -o run.clew -- ./racey            in QEMU
  clew record --source step -o run.clew -- ./racey            step by step
  clew record --pid 4711 -o run.clew                          one that runs
  clew record --free --pid 4711 -o run.clew                   at its own speed
  clew record --unit nginx.service -o run.clew
  clew record --source step --inputs -o run.clew -- ./racey   inputs by eBPF
  clew record --source perf -o run.clew -- ./server           on Intel PT
  clew record --source perf --pid 4711 --timeout 5 -o run.clew
  clew record --source perf --unit nginx.service --snapshot -o run.clew
  clew record --source perf --inputs -o run.clew -- ./server  and its input
  clew record --source perf --sideband-only --system-wide --timeout 5 -o s.clew
)";

struct RecordOptions {
  recorder::RecordOptions record;
  HardwareOptions hardware;
  std::string source = "tracer";
  std::string repeat;               // bundle; empty: the run is a new one
  std::optional<Failure> repeated;  // how the run ended that is repeated
  std::string fail_on;
  std::string timing = "mtc";
  std::string size_limit;
  std::string ring;
  const Option* until_fail = nullptr;
  uint32_t tries = 0;  // 0: not given, or given without a number
  uint32_t jobs = 1;
  bool json = false;
};

// "sldt eax at 0x401136 (0f 00 c0), app+0x1136"
std::string UnknownText(const recorder::UnknownInsn& unknown) {
  machine::Decoder decoder;
  const std::string text =
      decoder.Describe(unknown.insn.ip.as_int(), unknown.insn.bytes);
  return unknown.place.empty() ? text : text + ", " + unknown.place;
}

bool CanBeRepeated(const RecordOptions& options,
                   const recorder::RecordOutcome& outcome) {
  return outcome.kept && options.record.process == 0 && outcome.process == 0 &&
         !options.record.make_tap && !options.record.is_free;
}

Json ToJson(const RecordOptions& options,
            const recorder::RecordOutcome& outcome) {
  Json json;
  json["bundle"] = outcome.kept ? Json(options.record.output) : Json();
  json["failure"] = FailureJson(outcome.failure);
  json["seed"] = options.record.is_free ? Json() : Json(outcome.seed);
  json["instructions"] = outcome.insns;
  json["handovers"] = outcome.handovers;
  json["context_switches"] = outcome.switches;
  json["pt_bytes"] = outcome.pt_bytes;
  json["ring"] = options.record.ring_bytes == 0
                     ? Json()
                     : Json{{"halves", outcome.ring.halves},
                            {"stopped_us", outcome.ring.stopped_us},
                            {"stopped_us_max", outcome.ring.stopped_us_max}};
  json["trace_dropped"] = outcome.dropped;
  json["repeat"] = CanBeRepeated(options, outcome)
                       ? Json(RepeatCommand(options.record.output))
                       : Json();
  json["stopped_ms"] =
      options.record.process != 0 ? Json(outcome.stopped_ms) : Json();
  json["repeated"] =
      options.repeated
          ? Json(recorder::SameEnd(*options.repeated, outcome.failure))
          : Json();
  json["inputs_unknown"] = outcome.inputs_unknown;
  json["deviations"] = outcome.deviations;
  json["processes_left"] = outcome.left;
  json["child"] = outcome.process == 0 ? Json()
                                       : Json{{"process", outcome.process},
                                              {"command", outcome.child}};
  json["processes_not_recorded"] = outcome.unrecorded;
  json["unknown_instructions"] = Json::array();
  for (const recorder::UnknownInsn& unknown : outcome.unknown_insns) {
    json["unknown_instructions"].push_back(UnknownText(unknown));
  }
  return json;
}

void WarnOfInputs(const recorder::RecordOutcome& outcome) {
  if (outcome.inputs_unknown > 0) {
    fmt::print(stderr,
               "clew: warning: {} calls and signals are not known whole; "
               "'clew solve' stops at the first\n",
               outcome.inputs_unknown);
  }
}

// They may have been left out of the run's path, after a fault for example.
void WarnOfUnknown(const recorder::RecordOutcome& outcome) {
  if (outcome.unknown_insns.empty()) {
    return;
  }
  fmt::print(stderr,
             "clew: warning: the run came to {} instructions that cannot be "
             "replayed; 'clew solve' stops at the first that was executed:\n",
             outcome.unknown_insns.size());
  size_t shown = 0;
  for (const recorder::UnknownInsn& unknown : outcome.unknown_insns) {
    if (++shown > kUnknownShownMax) {
      fmt::print(stderr, "  ...\n");
      return;
    }
    fmt::print(stderr, "  {}\n", UnknownText(unknown));
  }
}

void WarnOfLeft(const recorder::RecordOutcome& outcome) {
  if (!outcome.left.empty()) {
    fmt::print(stderr,
               "clew: warning: processes that the program started still run: "
               "{}\n",
               fmt::join(outcome.left, ", "));
  }
}

// What the command line says of a run that it begins.
Status SetRunOptions(RecordOptions& options) {
  if (!options.fail_on.empty()) {
    CLEW_ASSIGN_OR_RETURN(rule, ParseFailOn(options.fail_on));
    options.record.fail_on = rule;
  }
  if (!options.size_limit.empty()) {
    CLEW_ASSIGN_OR_RETURN(
        bytes, recorder::perf::ParseBytes("--size-limit", options.size_limit));
    options.record.size_limit_bytes = bytes;
  }
  if (!options.ring.empty()) {
    CLEW_ASSIGN_OR_RETURN(bytes,
                          recorder::perf::ParseBytes("--ring", options.ring));
    if (bytes < kRingBytesMin) {
      return InvalidArgument("--ring is {} bytes, must be 256K at least",
                             bytes);
    }
    options.record.ring_bytes = bytes;
  }
  options.record.timing = options.timing != "none";
  options.record.source =
      options.source == "step"     ? recorder::SoftwareSource::kStep
      : options.source == "tracer" ? recorder::SoftwareSource::kTracer
                                   : recorder::SoftwareSource::kQemu;
  return {};
}

// What the bundle to repeat says of it.
Status TakeFromBundle(RecordOptions& options) {
  CLEW_ASSIGN_OR_RETURN(bundle, bundle::Bundle::Open(options.repeat));
  CLEW_ASSIGN_OR_RETURN(
      again, recorder::OptionsToRepeat(bundle.manifest(), bundle.path()));
  again.output = options.record.output;
  again.core_on_exit = options.record.core_on_exit;
  again.strict = options.record.strict;
  again.keep_only_if_failed = options.record.keep_only_if_failed;
  options.record = std::move(again);
  options.repeated = bundle.manifest().failure;
  return {};
}

void SayDeviations(const recorder::RecordOutcome& outcome) {
  if (!outcome.deviations.empty()) {
    fmt::print(stderr, "clew: {} {}\n",
               outcome.failure.kind == FailureKind::kNone
                   ? "a failure of this program"
                   : "this failure",
               RecordersDoubt(outcome.deviations));
  }
}

void SayChild(const recorder::RecordOutcome& outcome) {
  if (outcome.process != 0) {
    fmt::print(stderr, "clew: that is process {}, {:?}\n", outcome.process,
               outcome.child);
  }
  if (!outcome.unrecorded.empty()) {
    fmt::print(stderr,
               "clew: warning: {} processes that the program made were not "
               "recorded: {}\n",
               outcome.unrecorded.size(), outcome.unrecorded.front());
  }
}

void SayRing(const recorder::RecordOutcome& outcome) {
  const recorder::RingUse& ring = outcome.ring;
  if (ring.halves != 0) {
    fmt::print(stderr,
               "clew: the end of the run is kept; the program was stopped {} "
               "times for that, {:.1f} ms each, {:.1f} ms at most\n",
               ring.halves,
               static_cast<double>(ring.stopped_us) / 1e3 /
                   static_cast<double>(ring.halves),
               static_cast<double>(ring.stopped_us_max) / 1e3);
  }
}

// Of a new run.
Status SetSurroundings(RecordOptions& options) {
  CLEW_ASSIGN_OR_RETURN(own,
                        recorder::OwnSurroundings(options.record.command[0]));
  if (recorder::TurnLeakSanitizerOff(own)) {
    fmt::print(stderr,
               "clew: LeakSanitizer cannot look into a program that is "
               "recorded: it is off (LSAN_OPTIONS=detect_leaks=0)\n");
  }
  options.record.surroundings = std::move(own);
  return {};
}

Result<recorder::RecordOutcome> Run(RecordOptions& options) {
  CLEW_RETURN_IF_ERROR(options.repeat.empty() ? SetRunOptions(options)
                                              : TakeFromBundle(options));
  if (options.repeat.empty() && !options.record.command.empty()) {
    CLEW_RETURN_IF_ERROR(SetSurroundings(options));
  }
  if (options.record.source == recorder::SoftwareSource::kQemu) {
    CLEW_ASSIGN_OR_RETURN(plugin, recorder::FindPlugin());
    options.record.plugin_path = plugin;
  }
  const auto coverage = std::make_shared<machine::Coverage>(
      options.record.source == recorder::SoftwareSource::kQemu
          ? x86::kX86_64V2
          : x86::HostFeatures());
  options.record.can_replay = [coverage](std::span<const std::byte> bytes) {
    return coverage->Has(bytes);
  };
  if (options.until_fail->count() == 0) {
    return recorder::Record(options.record);
  }
  const recorder::UntilFail how{
      .tries_max = options.tries == 0 ? kTriesDefault : options.tries,
      .jobs = options.jobs};
  TerminalProgress progress("record", "runs");
  return recorder::RecordUntilFail(options.record, how, &progress);
}

// The first of `names` that was given, or empty.
std::string FirstGiven(const Command& command,
                       std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (command.CountOf(name) > 0) {
      return name;
    }
  }
  return {};
}

// Options of the software sources alone.
std::string SoftwareOnly(const Command& command) {
  return FirstGiven(
      command,
      {"--until-fail", "--jobs", "--only-if-failed", "--size-limit", "--ring",
       "--no-core-on-exit", "--strict", "--seed", "--cores", "--quantum",
       "--timing", "--cyc", "--psb-period", "--repeat", "--children"});
}

// What the bundle that is repeated says by itself.
std::string SaidByBundle(const Command& command) {
  return FirstGiven(
      command,
      {"--until-fail", "--jobs", "--fail-on", "--timeout", "--size-limit",
       "--children", "--ring", "--seed", "--cores", "--quantum", "--timing",
       "--mtc-period", "--cyc", "--psb-period", "command"});
}

// And of a run that was to be a repetition, whether it is.
void SayHowToRepeat(const RecordOptions& options,
                    const recorder::RecordOutcome& outcome) {
  if (options.repeated) {
    const bool same = recorder::SameEnd(*options.repeated, outcome.failure);
    fmt::print(
        stderr, "clew: {}\n",
        same ? "it ended as the run that it repeats"
             : "not repeated: that run " + OutcomeText(*options.repeated));
  }
  if (CanBeRepeated(options, outcome)) {
    fmt::print(stderr, "clew: to repeat this run: {}\n",
               RepeatCommand(options.record.output));
  }
}

// Options of a run that is begun, not of one that was.
std::string LaunchOnly(const Command& command) {
  return FirstGiven(command, {"--until-fail", "--jobs", "--only-if-failed",
                              "--repeat", "--strict", "command"});
}

Status SetAttachOptions(const Command& command, RecordOptions& options) {
  const std::string to = FirstGiven(command, {"--unit", "--pid"});
  if (options.source == "qemu") {
    return InvalidArgument("{} is not for --source qemu", to);
  }
  if (const std::string name = LaunchOnly(command); !name.empty()) {
    return InvalidArgument("{} attaches to a process that runs: leave out {}",
                           to, name);
  }
  options.record.process = options.hardware.process;
  if (to == "--unit") {
    if (options.hardware.process != 0) {
      return InvalidArgument("wanted one of --unit and --pid");
    }
    CLEW_ASSIGN_OR_RETURN(
        process, recorder::ProcessOfUnit(kCgroups, options.hardware.unit));
    options.record.process = process;
  }
  const volatile std::sig_atomic_t& stop = CatchStopSignals();
  const std::chrono::seconds limit(options.record.timeout_s);
  options.record.timeout_s = 0;
  options.record.is_over = [&stop, limit,
                            begin = std::chrono::steady_clock::now()] {
    return stop != 0 || (limit.count() != 0 &&
                         std::chrono::steady_clock::now() - begin >= limit);
  };
  return {};
}

// --inputs of --source step.
Status SetTap(const Command& command, RecordOptions& options) {
  const std::string given =
      FirstGiven(command, {"--inputs", "--inputs-buffer", "--inputs-rate"});
  if (given.empty()) {
    return {};
  }
  if (options.source != "step") {
    return InvalidArgument("{} needs --source step or perf", given);
  }
  if (!options.repeat.empty()) {
    return InvalidArgument(
        "{} is not for a run that is repeated: leave out --repeat", given);
  }
  CLEW_ASSIGN_OR_RETURN(inputs, ToInputsOptions(options.hardware));
  if (inputs) {
    options.record.make_tap = [how = *inputs](FileSystem& files,
                                              const std::string& path) {
      return recorder::MakeInputTap(files, path, how);
    };
  }
  return {};
}

// What has no meaning where threads run at once.
std::string NotForFree(const Command& command) {
  return FirstGiven(command, {"--seed", "--cores", "--quantum", "--strict",
                              "--repeat", "--inputs", "--cyc", "--mtc-period"});
}

Status CheckFree(const Command& command, const RecordOptions& options) {
  if (!options.ring.empty()) {
    if (!options.record.is_free) {
      return InvalidArgument("--ring needs --free");
    }
    if (!options.size_limit.empty()) {
      return InvalidArgument("--ring is a limit: leave out --size-limit");
    }
  }
  if (!options.record.is_free) {
    return {};
  }
  if (options.source != "tracer") {
    return InvalidArgument("--free needs --source tracer");
  }
  if (options.timing == "none") {
    return InvalidArgument("--free needs the time: leave out --timing none");
  }
  const std::string name = NotForFree(command);
  return name.empty()
             ? Status()
             : InvalidArgument("{} is not for --free: leave out one of them",
                               name);
}

// A child is not launched, and one log of inputs is of one process.
Status CheckChildren(const Command& command, const RecordOptions& options) {
  if (!options.record.with_children) {
    return {};
  }
  if (options.source == "qemu") {
    return InvalidArgument("--children is not for --source qemu");
  }
  return command.CountOf("--inputs") == 0
             ? Status()
             : InvalidArgument(
                   "--children is not for --inputs: leave out one of them");
}

// A process that was attached to and runs on.
bool WasLetGo(const RecordOptions& options,
              const recorder::RecordOutcome& outcome) {
  return options.record.process != 0 &&
         outcome.failure.kind == FailureKind::kTimeLimit;
}

std::string HowItEnded(const RecordOptions& options,
                       const recorder::RecordOutcome& outcome) {
  const std::string text = WasLetGo(options, outcome)
                               ? "recorded; the process goes on"
                               : OutcomeText(outcome.failure);
  return options.record.process == 0
             ? text
             : fmt::format("{}, after it was stopped for {} ms", text,
                           outcome.stopped_ms);
}

int RunPerf(const Command& command, RecordOptions& options) {
  if (const std::string name = SoftwareOnly(command); !name.empty()) {
    return ReportError(
        InvalidArgument("{} is not for --source perf", name).error());
  }
  HardwareOptions& hardware = options.hardware;
  hardware.command = options.record.command;
  hardware.output = options.record.output;
  hardware.fail_on = options.fail_on;
  hardware.timeout_s = options.record.timeout_s;
  hardware.json = options.json;
  hardware.mtc_period = options.record.mtc_period;
  return RunHardware(hardware);
}

int RunRecord(const Command& command, RecordOptions& options) {
  if (options.source == "perf") {
    return RunPerf(command, options);
  }
  if (!FirstGiven(command, {"--unit", "--pid"}).empty()) {
    const Status attaches = SetAttachOptions(command, options);
    if (!attaches) {
      return ReportError(attaches.error());
    }
  }
  if (HasHardwareOptions(command)) {
    return ReportError(
        InvalidArgument("--cgroup, --system-wide, --buffer, "
                        "--cyc-threshold, --filter, --snapshot and "
                        "--sideband-only need --source perf")
            .error());
  }
  const Status tapped = SetTap(command, options);
  if (!tapped) {
    return ReportError(tapped.error());
  }
  const Status is_free = CheckFree(command, options);
  if (!is_free) {
    return ReportError(is_free.error());
  }
  const Status has_children = CheckChildren(command, options);
  if (!has_children) {
    return ReportError(has_children.error());
  }
  if (const std::string name = SaidByBundle(command);
      !options.repeat.empty() && !name.empty()) {
    return ReportError(
        InvalidArgument("--repeat runs as {:?} says; leave out {}",
                        options.repeat, name)
            .error());
  }
  if (command.CountOf("--jobs") > 0 && options.until_fail->count() == 0) {
    return ReportError(
        InvalidArgument("--jobs says how many runs of --until-fail there are "
                        "at once: add --until-fail, or leave out --jobs")
            .error());
  }
  const auto outcome = Run(options);
  if (!outcome) {
    return ReportError(outcome.error());
  }
  if (options.json) {
    PrintJson(ToJson(options, *outcome));
  } else {
    fmt::print(
        stderr,
        "clew: {}: {}; {}{} instructions, {} bytes of "
        "PT\n",
        outcome->kept ? options.record.output : "no bundle kept",
        HowItEnded(options, *outcome),
        options.record.is_free ? "" : fmt::format("seed {}, ", outcome->seed),
        WithMagnitude(static_cast<double>(outcome->insns)),
        WithMagnitude(static_cast<double>(outcome->pt_bytes)));
    SayChild(*outcome);
    SayRing(*outcome);
    SayDeviations(*outcome);
    WarnOfUnknown(*outcome);
    WarnOfInputs(*outcome);
    WarnOfLeft(*outcome);
    SayHowToRepeat(options, *outcome);
  }
  return outcome->failure.kind == FailureKind::kNone ||
                 WasLetGo(options, *outcome)
             ? kExitOk
             : kExitFinding;
}

void AddRunOptions(Command& command, RecordOptions& options) {
  recorder::RecordOptions& record = options.record;
  command.add_option("-o,--output", record.output, "the bundle to make")
      ->required();
  command.add_option("--repeat", options.repeat,
                     "run what this bundle is of once more: its program, "
                     "arguments, environment, folder, seed and options");
  command.add_flag("--children", record.with_children,
                   "record the processes that it makes, too, and theirs, until "
                   "it has ended; the bundle is of the first that fails");
  options.until_fail =
      command
          .add_option("--until-fail", options.tries,
                      "try seeds until a run fails, at most N times (1000)")
          ->expected(0, 1);
  command
      .add_option("--jobs", options.jobs,
                  "runs of --until-fail at once, 1 to 64, each with a seed of "
                  "its own; the least seed that fails is kept, as with 1. With "
                  "more than 1 the program's standard input is /dev/null, and "
                  "it must not mind others of its kind (ports, files)")
      ->capture_default_str();
  command.add_option("--fail-on", options.fail_on,
                     "exit status that counts as failure: exit!=N, exit=N, "
                     "panics (the default: 101 as of Rust's, 2 as of Go's, any "
                     "but 0 behind a sanitizer's report) or never");
  command.add_option("--timeout", record.timeout_s,
                     "seconds after which the run is ended and counts as "
                     "failed: of the program's own time (10 ns for each "
                     "instruction, and its waits for others), so that a busy "
                     "host does not matter; with --source perf of real time, "
                     "and what was not launched is recorded so long");
  command.add_option("--size-limit", options.size_limit,
                     "bytes of trace and inputs (512M, 4G) after which they "
                     "are dropped: the program goes on, and its failure leaves "
                     "a bundle with core dump and images alone; with none, "
                     "there is no limit");
  command.add_option(
      "--ring", options.ring,
      "with --free: bytes of trace and inputs (64M) of which the "
      "end is kept, a half of them at least, however long the "
      "program runs; the bundle begins in mid-run then");
  command.add_flag("--strict", record.strict,
                   "end, with exit code 3, where the program uses what the "
                   "recorder carries out otherwise than the kernel");
  command.add_flag("--only-if-failed", record.keep_only_if_failed,
                   "keep no bundle of a run that did not fail");
  command.add_flag("!--no-core-on-exit", record.core_on_exit,
                   "no core dump of a run that did not fail");
}

void AddTraceOptions(Command& command, RecordOptions& options) {
  recorder::RecordOptions& record = options.record;
  command.add_option("--seed", record.seed, "of the schedule")
      ->capture_default_str();
  command.add_option("--cores", record.cores, "virtual cores, 1 to 64")
      ->capture_default_str();
  command
      .add_option("--quantum", record.quantum_insns,
                  "mean instructions before another core goes on; more in runs "
                  "of over 8 M, to 64 times as many")
      ->capture_default_str();
  command
      .add_option("--timing", options.timing,
                  "timing packets: mtc (and tsc), or none")
      ->check(IsMember({"mtc", "none"}))
      ->capture_default_str();
  command.add_option(
      "--mtc-period", record.mtc_period,
      "an MTC packet each 64 * 2^N instructions (hardware: each 2^N ticks of "
      "the crystal), 0 to 15; 3 without this, 6 with --source qemu");
  command.add_flag("--cyc", record.cyc, "CYC packets, too");
  command
      .add_option("--psb-period", record.psb_period_bytes,
                  "bytes of PT between synchronisation points")
      ->capture_default_str();
}

}  // namespace

void AddRecord(Command& app, int& exit_code) {
  auto options = std::make_shared<RecordOptions>();
  Command* command =
      app.add_subcommand("record", "run a program and record the run");
  command->footer(kRecordFooter);
  command
      ->add_option("--source", options->source,
                   "software PT of the program on this CPU, by a copy of its "
                   "code (tracer) or, slowly, by single steps (step), or in "
                   "QEMU (qemu); or the hardware's (perf)")
      ->check(IsMember({"tracer", "qemu", "step", "perf"}))
      ->capture_default_str();
  command->add_flag("--free", options->record.is_free,
                    "all threads run at once, as without the recorder; the "
                    "run cannot be repeated");
  AddRunOptions(*command, *options);
  AddTraceOptions(*command, *options);
  AddHardwareOptions(*command, options->hardware);
  command->add_flag("--json", options->json, "report as JSON on stdout");
  command->add_option("command", options->record.command,
                      "program and its arguments, behind --");
  command->positionals_at_end();
  command->callback(
      [=, &exit_code] { exit_code = RunRecord(*command, *options); });
}

}  // namespace clew::cli
