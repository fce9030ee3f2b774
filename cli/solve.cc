#include "solver/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/code_names.h"
#include "cli/race_report.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "cli/verdict_text.h"
#include "common/linux/deviations.h"
#include "common/linux/syscall_table.h"
#include "common/progress.h"
#include "common/text/shell_quote.h"
#include "constraints/verdict.h"
#include "follower/bundle/bundle_recording.h"
#include "machine/memory_models.h"

namespace clew::cli {
namespace {

constexpr uint64_t kVerboseMeasureInsnsMax = 20'000'000;

struct SolveArguments {
  std::string bundle;
  double time_limit_s = 60;
  uint64_t seed = 1;
  uint64_t tape_items = follower::TapeLimits().items_max;
  std::string memory_model = "sc";
  bool verbose = false;
  bool json = false;
};

constexpr const char* kAutoModel = "auto";

const char* GradeName(WitnessGrade grade) {
  switch (grade) {
    case WitnessGrade::kPathExact:
      return "path-exact";
    case WitnessGrade::kMemoryExact:
      return "memory-exact";
    case WitnessGrade::kNone:
      break;
  }
  return "none";
}

// What a search found, with the names of what it is about.
struct Solved {
  solver::SolveReport report;
  Findings findings;                    // of a witness
  std::string place;                    // where the model differs
  std::vector<std::string> deviations;  // of the bundle
};

Json ToJson(const solver::ModelDifference& difference,
            const std::string& place) {
  return {
      {"text", Describe(difference, place)},
      {"call", difference.last_call ? Json(SyscallName(*difference.last_call))
                                    : Json()},
      {"place", place},
      {"addr", difference.at.ip},
      {"thread", difference.at.tid.as_int()},
      {"instruction", difference.at.insn_index}};
}

Json ToJson(const SolveArguments& arguments, const Solved& solved) {
  const solver::SolveReport& report = solved.report;
  Json json;
  json["bundle"] = arguments.bundle;
  json["verdict"] = VerdictName(report);
  json["grade"] = GradeName(report.schedule.grade);
  json["memory_model"] = {
      {"allowed", machine::NameOf(report.model)},
      {"needed", report.verdict == constraints::Verdict::kWitness
                     ? Json(machine::NameOf(report.schedule.model))
                     : Json()}};
  json["engine"] = report.schedule.engine;
  json["seconds"] = report.seconds;
  json["instructions"] = report.insns;
  json["schedule_steps"] = report.schedule.steps.size();
  json["guess_was_enough"] = report.windows.guess_was_enough;
  json["contested_instructions"] = report.contested;
  if (report.ambiguity) {
    json["reads_of_shared_words"] = report.ambiguity->reads;
    json["contested_reads"] = report.ambiguity->contested_reads;
    json["ambiguity_bits_per_read"] = report.ambiguity->per_read_ambiguity();
    json["evidence_bits_per_read"] = report.ambiguity->per_read_evidence();
  }
  json["window_search"] = {{"stretches_of_the_guess", report.windows.stretches},
                           {"restarts", report.restarts},
                           {"windows", report.windows.windows},
                           {"steps", report.windows.search_steps},
                           {"contradictions", report.windows.contradictions},
                           {"back_jumps", report.windows.back_jumps},
                           {"instructions_run", report.windows.insns_run}};
  json["constructive"] = {
      {"rounds", report.whole.rounds},
      {"states", report.whole.answer.stats.nodes},
      {"steps", report.whole.answer.stats.steps},
      {"contradictions", report.whole.answer.stats.contradictions},
      {"cuts", report.whole.cuts},
      {"clauses", report.whole.answer.clauses},
      {"every_choice_refuted", report.whole.exhausted}};
  json["outputs_differing"] = report.outputs_differing;
  json["memory_bytes_compared"] = report.memory.bytes_compared;
  json["memory_bytes_equal"] = report.memory.bytes_equal;
  json["memory_differences"] = Json::array();
  for (const auto& difference : report.memory.differences) {
    json["memory_differences"].push_back(
        {{"addr", difference.addr}, {"bytes", difference.size_bytes}});
  }
  json["registers_compared"] = report.registers.compared;
  json["registers_equal"] = report.registers.equal;
  json["register_differences"] = Json::array();
  for (const auto& difference : report.registers.differences) {
    json["register_differences"].push_back(
        {{"thread", difference.thread.as_int()},
         {"name", difference.name},
         {"machine", difference.machine},
         {"core", difference.dumped}});
  }
  json["deviations"] = solved.deviations;
  if (!report.reason.empty()) {
    json["reason"] = report.reason;
    json["engines"] = report.engines;
    json["doubts"] = report.doubts;
    json["advice"] = report.advice;
  }
  AddTo(json, solved.findings);
  json["conflict"] = report.conflict;
  json["in_every_order"] = report.in_every_order;
  json["model_difference"] =
      report.difference ? ToJson(*report.difference, solved.place) : Json();
  return json;
}

void PrintSearch(const solver::SolveReport& report) {
  fmt::print(
      "  guess            the first one {} the evidence\n",
      report.windows.guess_was_enough ? "agrees with all" : "contradicts");
  if (report.ambiguity) {
    fmt::print(
        "  contested        {} instructions, {} of {} reads of shared words\n"
        "  ambiguity A      {:.3f} bits a read; evidence E {:.3f} bits a "
        "read\n",
        report.contested, report.ambiguity->contested_reads,
        report.ambiguity->reads, report.ambiguity->per_read_ambiguity(),
        report.ambiguity->per_read_evidence());
  }
  if (report.windows.guess_was_enough) {
    return;
  }
  fmt::print(
      "  window search    {} windows, {} steps, {} contradictions, {} insn "
      "run\n",
      report.windows.windows, report.windows.search_steps,
      report.windows.contradictions,
      WithMagnitude(static_cast<double>(report.windows.insns_run)));
  if (report.restarts > 0) {
    fmt::print("  restarts         {}, by other seeds\n", report.restarts);
  }
  if (report.whole.rounds > 0) {
    fmt::print(
        "  constructive     {} rounds, {} states, {} steps, {} "
        "contradictions, {} clauses\n",
        report.whole.rounds, report.whole.answer.stats.nodes,
        report.whole.answer.stats.steps,
        report.whole.answer.stats.contradictions, report.whole.answer.clauses);
  }
}

void PrintMemory(const follower::MemoryComparison& memory, bool verbose) {
  if (memory.bytes_compared == 0) {
    fmt::print("  memory           no core dump to compare with\n");
    return;
  }
  const uint64_t differing = memory.bytes_compared - memory.bytes_equal;
  fmt::print("  memory           {} of {} bytes of the core dump agree",
             memory.bytes_equal, memory.bytes_compared);
  fmt::print("{}\n",
             differing == 0 ? "" : fmt::format(" ({} differ)", differing));
  const size_t shown = verbose ? memory.differences.size()
                               : std::min<size_t>(memory.differences.size(), 4);
  for (size_t i = 0; i < shown; ++i) {
    fmt::print("                   differs: {:#x}, {} bytes\n",
               memory.differences[i].addr, memory.differences[i].size_bytes);
  }
}

void PrintRegisters(const follower::RegisterComparison& registers) {
  if (registers.compared == 0) {
    return;
  }
  fmt::print("  registers        {} of {} of the core dump agree\n",
             registers.equal, registers.compared);
  for (const auto& difference : registers.differences) {
    fmt::print(
        "                   differs: {} of thread {}: {:#x}, not {:#x}\n",
        difference.name, difference.thread, difference.machine,
        difference.dumped);
  }
}

void PrintLines(const char* label, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    fmt::print("  {:<17}{}\n", label, line);
  }
}

void PrintFurthest(const solver::SolveReport& report) {
  const follower::Contradiction& furthest = report.windows.furthest;
  fmt::print(
      "  furthest run     after {} instructions: {}{}\n",
      report.windows.furthest_insns,
      furthest.text.empty()
          ? "nobody could go on"
          : fmt::format("thread {} at {:#x}: ", furthest.tid, furthest.ip),
      furthest.text);
}

// Why there is no answer, and what may help.
void PrintUnknown(const SolveArguments& arguments,
                  const solver::SolveReport& report) {
  fmt::print("{}: no answer after {:.1f} s ({}); no schedule claimed\n",
             arguments.bundle, report.seconds, report.reason);
  PrintFurthest(report);
  PrintLines("how far", report.engines);
  PrintLines("in doubt", report.doubts);
  PrintLines("may help", report.advice);
}

// Behind what was found: under which memory model, where it is not the
// strongest.
std::string NeededModel(const solver::SolveReport& report) {
  return report.schedule.model == MemoryModelKind::kSc
             ? ""
             : fmt::format(", only with store buffers ({})",
                           machine::NameOf(report.schedule.model));
}
std::string RefutedUnder(const solver::SolveReport& report) {
  return report.model == MemoryModelKind::kSc
             ? ""
             : fmt::format(", not even with store buffers ({})",
                           machine::NameOf(report.model));
}

// No order agrees. Of a recording that is whole, that is not the program's
// doing.
void PrintUnsat(const SolveArguments& arguments, const Solved& solved) {
  const solver::SolveReport& report = solved.report;
  if (report.difference) {
    fmt::print(
        "{}: clew's model of the kernel or the CPU differs from what was "
        "recorded: {}{}\n",
        arguments.bundle, Describe(*report.difference, solved.place),
        RefutedUnder(report));
  } else {
    fmt::print("{}: no interleaving agrees with the evidence{}\n",
               arguments.bundle, RefutedUnder(report));
  }
  PrintLines("in conflict", report.conflict);
  PrintFurthest(report);
  if (report.difference) {
    fmt::print("  to report it     clew report-bug {}\n",
               ShellQuote(arguments.bundle));
  }
}

void PrintText(const SolveArguments& arguments, const Solved& solved) {
  const solver::SolveReport& report = solved.report;
  switch (report.verdict) {
    case constraints::Verdict::kWitness:
      fmt::print("{}: witness found, {}{}\n", arguments.bundle,
                 GradeName(report.schedule.grade), NeededModel(report));
      fmt::print("  engine           {}, {:.2f} s\n", report.schedule.engine,
                 report.seconds);
      fmt::print("  instructions     {}, schedule of {} steps\n", report.insns,
                 report.schedule.steps.size());
      break;
    case constraints::Verdict::kUnsat:
      PrintUnsat(arguments, solved);
      break;
    case constraints::Verdict::kUnknown:
      PrintUnknown(arguments, report);
      break;
  }
  if (!solved.deviations.empty()) {
    fmt::print("  {:<17}{}\n", "the failure",
               RecordersDoubt(solved.deviations));
  }
  PrintSearch(report);
  if (report.verdict == constraints::Verdict::kWitness) {
    PrintMemory(report.memory, arguments.verbose);
    PrintRegisters(report.registers);
    PrintFindings(solved.findings);
    if (report.outputs_differing > 0) {
      fmt::print("  output           {} writes had other bytes than recorded\n",
                 report.outputs_differing);
    }
    fmt::print("replay it with: clew replay {}\n",
               ShellQuote(arguments.bundle));
  }
}

int ExitCodeOf(const solver::SolveReport& report) {
  switch (report.verdict) {
    case constraints::Verdict::kWitness:
      return kExitOk;
    case constraints::Verdict::kUnsat:
      return report.difference ? kExitBug : kExitFinding;
    case constraints::Verdict::kUnknown:
      break;
  }
  return kExitLimit;
}

std::vector<MemoryModelKind> ModelsOf(const SolveArguments& arguments) {
  if (arguments.memory_model == kAutoModel) {
    return {MemoryModelKind::kSc, MemoryModelKind::kTso, MemoryModelKind::kPso};
  }
  return {machine::MemoryModelNamed(arguments.memory_model)
              .value_or(MemoryModelKind::kSc)};
}

Result<Solved> SolveBundle(const SolveArguments& arguments) {
  CLEW_ASSIGN_OR_RETURN(opened, follower::OpenRecording(arguments.bundle));
  solver::SolveOptions options;
  options.time_limit_s = arguments.time_limit_s;
  options.tape.items_max = arguments.tape_items;
  options.windows.seed = arguments.seed;
  if (arguments.verbose) {
    options.measure_insns_max = kVerboseMeasureInsnsMax;
  }
  TerminalProgress progress("solve", "insn");
  CLEW_ASSIGN_OR_RETURN(
      report, solver::SolveUnder(opened->recording, ModelsOf(arguments),
                                 options, &progress));
  if (report.verdict == constraints::Verdict::kWitness) {
    CLEW_RETURN_IF_ERROR(
        opened->bundle.WriteSchedule(PosixFileSystem(), report.schedule, {}));
  }
  Solved solved = {.report = std::move(report),
                   .findings = {},
                   .place = {},
                   .deviations = opened->bundle.manifest().deviations};
  if (solved.report.verdict == constraints::Verdict::kWitness) {
    // For people: without them the witness is as good.
    solved.findings =
        FindingsOf(*opened, solved.report.schedule).value_or(Findings());
  }
  if (solved.report.difference) {
    solved.place =
        CodeNames(*opened).NameOf(TraceeAddr(solved.report.difference->at.ip));
  }
  return solved;
}

int RunSolve(const SolveArguments& arguments) {
  const auto solved = SolveBundle(arguments);
  if (!solved) {
    return ReportError(solved.error());
  }
  if (arguments.json) {
    PrintJson(ToJson(arguments, *solved));
  } else {
    PrintText(arguments, *solved);
  }
  return ExitCodeOf(solved->report);
}

}  // namespace

void AddSolve(Command& app, int& exit_code) {
  auto arguments = std::make_shared<SolveArguments>();
  Command* command = app.add_subcommand(
      "solve", "find an interleaving that explains a recorded run");
  command->add_option("bundle", arguments->bundle, "bundle folder")->required();
  command
      ->add_option("--time-limit", arguments->time_limit_s,
                   "seconds until the search gives up; to follow the recording "
                   "to its first contradiction is not counted")
      ->capture_default_str();
  command
      ->add_option("--memory-model", arguments->memory_model,
                   "how long other threads may miss a store: sc, tso (store "
                   "buffers, as on x86), pso (stores to different places also "
                   "overtake one another), auto (the first of these under "
                   "which there is a witness)")
      ->check(IsMember({"sc", "tso", "pso", kAutoModel}))
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "seed of the guesses")
      ->capture_default_str();
  AddTapeItems(*command, arguments->tape_items);
  command->add_flag(
      "-v,--verbose", arguments->verbose,
      "show every place where memory differs; measure ambiguity and "
      "evidence of longer recordings, too");
  command->add_flag("--json", arguments->json, "print one JSON document");
  command->footer(
      "Writes schedule.pb into the bundle when a witness is found: a schedule\n"
      "that an independent run has replayed and found to agree with every\n"
      "recorded path, system call and the failure.\n\n"
      "Tells which accesses of the program raced and, of a hang, who holds\n"
      "what and who waits for it; --json has more of them.\n\n"
      "Where clew's model differs, `clew report-bug` makes what to send.\n\n"
      "Exit codes: 0 witness, 1 no interleaving agrees, of a recording of\n"
      "which something is lost, 5 no answer within the limits, 70 clew's "
      "model\n"
      "of the kernel or the CPU differs from what was recorded; 'clew help' "
      "has\n"
      "the others.\n\n"
      "Examples:\n"
      "  clew solve fail.clew\n"
      "  clew solve --time-limit 300 -v fail.clew\n"
      "  clew solve --memory-model auto fail.clew\n"
      "  clew solve --json fail.clew | jq .verdict");
  command->callback(
      [arguments, &exit_code] { exit_code = RunSolve(*arguments); });
}

}  // namespace clew::cli
