#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bundle/bundle.h"
#include "cli/backtrace_text.h"
#include "cli/failure_text.h"
#include "cli/repeat_command.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "common/linux/deviations.h"
#include "common/progress.h"
#include "common/text/hex.h"
#include "common/text/shell_quote.h"
#include "decoder/backtrace.h"
#include "decoder/bundle_trace.h"
#include "decoder/input_counts.h"
#include "decoder/thread_counts.h"

namespace clew::cli {
namespace {

using bundle::Bundle;
using bundle::BundleImage;
using bundle::BundleSource;
using bundle::Manifest;
using bundle::MmapRecord;
using bundle::ToPerfNanos;
using decoder::PerfTrace;
using decoder::StreamStats;

constexpr const char* kInfoFooter = R"(Exit codes:
  0  the summary is printed, with or without gaps in the trace
  4  the bundle breaks its format

Examples:
  clew info fail.clew
  clew info --no-backtraces fail.clew
  clew info --json fail.clew | jq .threads
)";

constexpr size_t kFramesMax = 40;  // of a thread

struct InfoOptions {
  std::string bundle;
  bool json = false;
  bool no_backtraces = false;
};

struct Summary {
  uint64_t ticks = 0;
  uint64_t nanos = 0;
  bool has_pt = true;
  uint64_t pt_bytes = 0;
  uint64_t switches = 0;
  size_t cores = 0;
  decoder::MissingImages images_missing;
  decoder::TraceCounts counts;
  std::optional<decoder::InputCounts> inputs;  // if the bundle has a log
  std::string repeat;  // command that repeats the run, if it can be
  std::string backtraces;
  std::string no_backtraces_because;
};

std::string SourceText(BundleSource source) {
  switch (source) {
    case BundleSource::kPerf:
      return "hardware (perf)";
    case BundleSource::kQemu:
      return "software (qemu)";
    case BundleSource::kStepper:
      return "software (stepper)";
    case BundleSource::kTracer:
      return "software (tracer)";
    case BundleSource::kTracerFree:
      return "software (tracer, threads at once)";
    case BundleSource::kImported:
      return "imported (perf.data)";
    case BundleSource::kUnknown:
      break;
  }
  return "unknown";
}

// The span of time in which slices have an end, in ticks. On hardware, a slice
// that began before the recording has 0 as its beginning.
uint64_t Ticks(const PerfTrace& trace, bool hardware) {
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (const Slice& slice : trace.slices()) {
    const bool earlier = hardware && slice.time.lo == TscTicks(0);
    first = std::min(first, (earlier ? slice.time.hi : slice.time.lo).as_int());
    if (slice.time.hi != decoder::kTscUnknown) {
      last = std::max(last, slice.time.hi.as_int());
    }
  }
  return last > first ? last - first : 0;
}

std::string NameOf(const PerfTrace& trace, Tid thread) {
  const auto named = trace.threads().find(thread);
  return named == trace.threads().end() ? std::string() : named->second.name;
}

// Decodes everything: what each thread did and where it cannot be known.
Result<decoder::TraceCounts> CountEverything(const PerfTrace& trace) {
  TerminalProgress progress("decode", "insn");
  return decoder::CountThreads(trace, {}, &progress);
}

void AddBacktraces(const Bundle& bundle, Summary& summary) {
  if (bundle.core_path().empty()) {
    summary.no_backtraces_because = "the bundle has no core dump";
    return;
  }
  const auto backtrace =
      decoder::ReadBacktrace(bundle, {.frames_max = kFramesMax});
  if (backtrace) {
    summary.backtraces = StacksText(*backtrace);
  } else {
    summary.no_backtraces_because = backtrace.error().message;
  }
}

// UTC, to the second; raw nanoseconds where no calendar has it.
std::string UtcText(int64_t at_ns) {
  const std::time_t seconds = at_ns / 1'000'000'000;
  std::tm utc = {};
  std::array<char, 64> text = {};
  if (gmtime_r(&seconds, &utc) == nullptr ||
      strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &utc) == 0) {
    return fmt::format("{} ns", at_ns);
  }
  return text.data();
}

std::string DescribeTrigger(const Trigger& trigger) {
  std::string text =
      fmt::format("{}, at {}", ToString(trigger.kind), UtcText(trigger.at_ns));
  if (!trigger.unit.empty()) {
    text += fmt::format(", unit {:?}", trigger.unit);
  }
  if (trigger.process != 0) {
    text += fmt::format(", process {}", trigger.process);
  }
  if (trigger.not_saved != 0) {
    text += fmt::format("; {} like it were not saved", trigger.not_saved);
  }
  return text;
}

Json ToJson(const std::optional<Trigger>& trigger) {
  if (!trigger) {
    return nullptr;
  }
  return {{"kind", ToString(trigger->kind)},
          {"unit", trigger->unit},
          {"process", trigger->process},
          {"at_ns", trigger->at_ns},
          {"not_saved", trigger->not_saved}};
}

Json ToJson(const std::optional<Sufficiency>& found) {
  if (!found) {
    return nullptr;
  }
  return {{"score", found->score},
          {"decodes", found->decodes},
          {"images_missing", found->images_missing},
          {"gaps", found->gaps},
          {"gaps_at_failure", found->gaps_at_failure},
          {"reasons", found->reasons}};
}

Json ToJson(const std::optional<decoder::InputCounts>& inputs) {
  if (!inputs) {
    return nullptr;
  }
  Json causes = Json::object();
  for (const auto& [cause, count] : inputs->causes) {
    causes[cause] = count;
  }
  return {{"threads", inputs->threads},
          {"calls", inputs->calls},
          {"signals", inputs->signals},
          {"instructions", inputs->instructions},
          {"unknown", inputs->unknown},
          {"unknown_in_log", inputs->unknown_in_log},
          {"unknown_by_cause", std::move(causes)}};
}

Json NotVerifiedJson(const Manifest& manifest) {
  Json paths = Json::array();
  for (const BundleImage& image : manifest.images) {
    if (image.not_verified) {
      paths.push_back(image.path);
    }
  }
  return paths;
}

Json ToJson(const Journal& journal) {
  Json lines = Json::array();
  for (const JournalLine& line : journal.lines) {
    lines.push_back({{"at_us", line.at_us},
                     {"process", line.process},
                     {"unit", line.unit},
                     {"program", line.program},
                     {"priority", line.priority},
                     {"message", line.message}});
  }
  return {{"lines", std::move(lines)}, {"none_because", journal.why}};
}

Json ToJson(const Manifest& manifest, const PerfTrace& trace,
            const Summary& summary) {
  Json threads = Json::array();
  for (const decoder::ThreadCount& thread : summary.counts.threads) {
    threads.push_back({{"thread", thread.thread.as_int()},
                       {"name", NameOf(trace, thread.thread)},
                       {"slices", thread.slices},
                       {"instructions", thread.instructions},
                       {"gaps", thread.gaps}});
  }
  Json missing = Json::array();
  for (const MmapRecord& mapping : summary.images_missing.needed) {
    missing.push_back(
        {{"path", mapping.path}, {"build_id", ToHex(mapping.build_id)}});
  }
  return {{"producer", manifest.producer},
          {"source", SourceText(manifest.source)},
          {"command", manifest.command},
          {"recorded_at_s", manifest.recorded_at_s},
          {"seed", manifest.seed},
          {"quantum_insns", manifest.quantum_insns},
          {"repeat", manifest.settings ? Json(summary.repeat) : Json()},
          {"failure", FailureJson(manifest.failure)},
          {"duration_ticks", summary.ticks},
          {"duration_ns", summary.nanos},
          {"cores", summary.cores},
          {"has_pt", summary.has_pt},
          {"pt_bytes", summary.pt_bytes},
          {"switches", summary.switches},
          {"instructions", summary.counts.stats.instructions},
          {"threads", std::move(threads)},
          {"images_missing", std::move(missing)},
          {"images_not_verified", NotVerifiedJson(manifest)},
          {"images_missing_of_others", summary.images_missing.others},
          {"origin",
           {{"host", manifest.origin.host},
            {"os_release", manifest.origin.os_release},
            {"cpu", manifest.origin.cpu},
            {"perf_version", manifest.origin.perf_version},
            {"snapshot", manifest.origin.snapshot}}},
          {"loss",
           {{"gaps", summary.counts.stats.gaps},
            {"gap_bytes", summary.counts.stats.gap_bytes},
            {"instructions_without_thread",
             summary.counts.stats.instructions_without_thread},
            {"aux_bytes", manifest.lost_aux_bytes},
            {"records", manifest.lost_records},
            {"inputs_unknown", manifest.inputs_unknown}}},
          {"inputs", ToJson(summary.inputs)},
          {"trigger", ToJson(manifest.trigger)},
          {"sufficiency", ToJson(manifest.sufficiency)},
          {"redactions", manifest.redactions},
          {"unlogged_inputs", manifest.unlogged_inputs},
          {"deviations", manifest.deviations},
          {"trace_dropped", manifest.trace_dropped},
          {"journal", ToJson(manifest.journal)},
          {"backtraces", summary.backtraces},
          {"no_backtraces_because", summary.no_backtraces_because}};
}

std::string LossText(const Manifest& manifest, const Summary& summary) {
  const StreamStats& stats = summary.counts.stats;
  const bool none = stats.gaps + stats.instructions_without_thread +
                        manifest.lost_aux_bytes + manifest.lost_records +
                        manifest.inputs_unknown ==
                    0;
  return none ? "none"
              : fmt::format(
                    "{} gaps ({} bytes), {} instructions of no known thread, "
                    "{} AUX bytes, {} records, {} inputs unknown",
                    stats.gaps, stats.gap_bytes,
                    stats.instructions_without_thread, manifest.lost_aux_bytes,
                    manifest.lost_records, manifest.inputs_unknown);
}

// How many there are, and on lines of their own why some are not known.
void PrintInputs(const std::optional<decoder::InputCounts>& inputs) {
  if (!inputs) {
    fmt::print("{:<13} none recorded\n", "inputs");
    return;
  }
  fmt::print(
      "{:<13} {} calls, {} signals, {} instructions of {} threads; {} "
      "unknown\n",
      "inputs", inputs->calls, inputs->signals, inputs->instructions,
      inputs->threads, inputs->unknown);
  for (const auto& [cause, count] : inputs->causes) {
    fmt::print("{:<13} - {}: {:?}\n", "", count, cause);
  }
}

bool IsOfKernel(const MmapRecord& mapping) { return mapping.pid < 0; }

void PrintMissing(const Summary& summary) {
  const decoder::MissingImages& missing = summary.images_missing;
  const auto of_kernel = std::ranges::count_if(missing.needed, IsOfKernel);
  if (!missing.needed.empty()) {
    fmt::print(
        "\n{} mappings of code have no file in the bundle, {} of them of the "
        "kernel and its modules{}\n",
        missing.needed.size(), of_kernel,
        std::ranges::all_of(missing.needed, IsOfKernel) ? "" : "; the others:");
  }
  for (const MmapRecord& mapping : missing.needed) {
    if (!IsOfKernel(mapping)) {
      fmt::print(
          "  {}, build-id {}\n", mapping.path,
          mapping.build_id.empty() ? "unknown" : ToHex(mapping.build_id));
    }
  }
  if (missing.others > 0) {
    fmt::print("\n{} files of other processes are not in the bundle\n",
               missing.others);
  }
}

void PrintNotVerified(const Manifest& manifest) {
  bool first = true;
  for (const BundleImage& image : manifest.images) {
    if (image.not_verified) {
      fmt::print("{}  {}\n",
                 std::exchange(first, false)
                     ? "\nimages taken by path alone, as the recording has no "
                       "build-id of them (not verified):\n"
                     : "",
                 image.path);
    }
  }
}

// What only a few manifests have.
void PrintFacts(const Manifest& manifest) {
  if (manifest.trigger) {
    fmt::print("{:<13} {}\n", "saved for", DescribeTrigger(*manifest.trigger));
  }
  if (manifest.sufficiency) {
    fmt::print("{:<13} score {} of 100\n", "sufficiency",
               manifest.sufficiency->score);
    for (const std::string& reason : manifest.sufficiency->reasons) {
      fmt::print("{:<13} - {:?}\n", "", reason);
    }
  }
  for (const std::string& line : manifest.redactions) {
    fmt::print("{:<13} {:?}\n", "redacted", line);
  }
  if (!manifest.trace_dropped.empty()) {
    fmt::print("{:<13} {:?}\n", "trace dropped", manifest.trace_dropped);
  }
  for (const std::string& phrase : manifest.unlogged_inputs) {
    fmt::print("{:<13} {:?}\n", "inputs lack", phrase);
  }
}

// At the end, as there are many lines.
void PrintJournal(const Journal& journal) {
  if (!journal.why.empty()) {
    fmt::print("\nno lines of the host's journal: {:?}\n", journal.why);
  }
  if (!journal.lines.empty()) {
    fmt::print("\njournal of the host:\n");
  }
  for (const JournalLine& line : journal.lines) {
    fmt::print("  {}.{:06} {:?}[{}]: {:?}\n", line.at_us / 1'000'000,
               line.at_us % 1'000'000, line.program, line.process,
               line.message);
  }
}

void PrintText(const Manifest& manifest, const PerfTrace& trace,
               const Summary& summary) {
  const auto line = [](const char* label, const std::string& text) {
    fmt::print("{:<13} {}\n", label, text);
  };
  line("command", ShellQuote(manifest.command));
  // Only our software sources choose by a seed.
  const bool has_seed = !RanAtOnce(manifest.source);
  line("source",
       fmt::format("{}, {}{}", SourceText(manifest.source), manifest.producer,
                   has_seed ? fmt::format(", seed {}", manifest.seed) : ""));
  if (manifest.settings) {
    line("to repeat", summary.repeat);
  }
  if (!manifest.origin.host.empty() || !manifest.origin.cpu.empty()) {
    line("host", fmt::format("{}, Linux {}, {}", manifest.origin.host,
                             manifest.origin.os_release, manifest.origin.cpu));
  }
  // The end of a program that was not launched was not seen.
  const bool unknown = manifest.failure.kind == FailureKind::kNone &&
                       IsOfHardware(manifest.source) &&
                       manifest.failure.thread == Tid(0);
  line("failure", unknown ? "not known" : FailureDetails(manifest.failure));
  if (!manifest.deviations.empty()) {
    line("in doubt", RecordersDoubt(manifest.deviations));
  }
  line("duration",
       fmt::format("{} ticks, {:.3f} ms of recorded time", summary.ticks,
                   static_cast<double>(summary.nanos) / 1e6));
  line("Intel PT",
       summary.has_pt
           ? fmt::format("{}B of {}",
                         WithMagnitude(static_cast<double>(summary.pt_bytes)),
                         trace.StreamsText())
           : "no Intel PT in it: threads, switches and mappings alone");
  line("instructions",
       fmt::format("{} in {} slices", summary.counts.stats.instructions,
                   summary.switches));
  line("loss", LossText(manifest, summary));
  PrintInputs(summary.inputs);
  PrintFacts(manifest);
  fmt::print("\n{:>8}  {:<16} {:>12} {:>8} {:>6}\n", "thread", "name",
             "instructions", "slices", "gaps");
  for (const decoder::ThreadCount& thread : summary.counts.threads) {
    fmt::print("{:>8}  {:<16} {:>12} {:>8} {:>6}\n", thread.thread,
               NameOf(trace, thread.thread), thread.instructions, thread.slices,
               thread.gaps);
  }
  PrintMissing(summary);
  PrintNotVerified(manifest);
  PrintJournal(manifest.journal);
  if (!summary.backtraces.empty()) {
    fmt::print("\n{}", summary.backtraces);
  } else if (!summary.no_backtraces_because.empty()) {
    fmt::print("\nno backtraces: {}\n", summary.no_backtraces_because);
  }
}

Status CountInputs(const Bundle& bundle, Summary& summary) {
  auto inputs = decoder::CountInputs(bundle);
  if (inputs) {
    summary.inputs = std::move(*inputs);
  } else if (inputs.error().sys_errno != ENOENT) {
    return std::unexpected(inputs.error());
  }
  return {};
}

Status RunInfo(const InfoOptions& options) {
  CLEW_ASSIGN_OR_RETURN(bundle, Bundle::Open(options.bundle));
  CLEW_ASSIGN_OR_RETURN(trace, decoder::ReadTrace(bundle));
  Summary summary;
  const auto source = bundle.manifest().source;
  summary.ticks = Ticks(*trace, IsOfHardware(source));
  summary.nanos =
      ToPerfNanos(TscTicks(summary.ticks), trace->conversion()).as_int() -
      trace->conversion().zero;
  summary.repeat = RepeatCommand(bundle.path());
  summary.has_pt = trace->has_pt();
  summary.cores = trace->cores().size();
  summary.switches = trace->slices().size();
  summary.images_missing =
      decoder::FindMissing(*trace, bundle.manifest().failure.thread);
  for (const decoder::CoreTrace& core : trace->cores()) {
    summary.pt_bytes += core.bytes;
  }
  CLEW_ASSIGN_OR_RETURN(counts, CountEverything(*trace));
  summary.counts = std::move(counts);
  CLEW_RETURN_IF_ERROR(CountInputs(bundle, summary));
  if (options.no_backtraces) {
    summary.no_backtraces_because = "not asked for";
  } else {
    AddBacktraces(bundle, summary);
  }
  if (options.json) {
    PrintJson(ToJson(bundle.manifest(), *trace, summary));
  } else {
    PrintText(bundle.manifest(), *trace, summary);
  }
  return {};
}

}  // namespace

void AddInfo(Command& app, int& exit_code) {
  auto options = std::make_shared<InfoOptions>();
  Command* command = app.add_subcommand("info", "say what a bundle holds");
  command->add_option("bundle", options->bundle, "bundle folder")->required();
  command->add_flag("--json", options->json, "one JSON document");
  command->add_flag("--no-backtraces", options->no_backtraces,
                    "leave out the call stacks of the core dump");
  command->footer(kInfoFooter);
  command->callback(
      [=, &exit_code] { exit_code = ReportStatus(RunInfo(*options)); });
}

}  // namespace clew::cli
