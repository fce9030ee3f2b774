#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "cli/bug_report.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "common/os/file.h"
#include "common/progress.h"
#include "follower/bundle/bundle_recording.h"
#include "solver/solve.h"

namespace clew::cli {
namespace {

constexpr const char* kReportBugFooter =
    R"(For a bundle of which `clew solve` says that clew's model of the kernel or the
CPU differs, or that finds no answer. Looks for an interleaving as `clew solve`
does, and writes one file of JSON, text that you can read before you send it:

  the verdict and the place; versions, model of the CPU
  the thread's last 300 calls, signals and special instructions: names, results
    and those arguments that point to no memory
  its last 16 blocks by place, and the instructions of the last two
  what was mapped at the start, with the last part of file names

It has no memory and no bytes that calls read or wrote, neither command line nor
environment nor output.

Exit codes: 0 the report is written, 2 there is nothing to report, as an
interleaving is found, or the file exists; 'clew help' has the others.

Examples:
  clew report-bug fail.clew
  clew report-bug -o report.json --time-limit 300 fail.clew
  clew report-bug --json fail.clew | jq .bytes
)";

struct ReportBugArguments {
  std::string bundle;
  std::string output;
  double time_limit_s = 60;
  bool json = false;
};

std::string OutputOf(const ReportBugArguments& arguments) {
  if (!arguments.output.empty()) {
    return arguments.output;
  }
  std::string path = arguments.bundle;
  while (path.size() > 1 && path.ends_with('/')) {
    path.pop_back();
  }
  return path + ".report.json";
}

// A report, and the text that is written of it.
struct Written {
  Json report;
  std::string path;
  uint64_t bytes = 0;
};

Result<Json> Report(const ReportBugArguments& arguments) {
  CLEW_ASSIGN_OR_RETURN(opened, follower::OpenRecording(arguments.bundle));
  TerminalProgress progress("solve", "insn");
  solver::SolveOptions options;
  options.time_limit_s = arguments.time_limit_s;
  CLEW_ASSIGN_OR_RETURN(solved,
                        solver::Solve(opened->recording, options, &progress));
  if (solved.verdict == constraints::Verdict::kWitness) {
    return InvalidArgument(
        "{}: an interleaving is found, so there is nothing to report; `clew "
        "solve` writes it into the bundle",
        arguments.bundle);
  }
  return MakeBugReport(*opened, solved);
}

Result<Written> WriteReport(const ReportBugArguments& arguments) {
  Written written = {.report = {}, .path = OutputOf(arguments)};
  if (Exists(written.path)) {
    return InvalidArgument("{} exists; name another file with -o",
                           written.path);
  }
  CLEW_ASSIGN_OR_RETURN(report, Report(arguments));
  // Names of functions and files may have bytes that are not UTF-8.
  const std::string text =
      report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  CLEW_RETURN_IF_ERROR(WriteWholeFile(PosixFileSystem(), written.path,
                                      std::as_bytes(std::span(text))));
  written.report = std::move(report);
  written.bytes = text.size();
  return written;
}

void PrintText(const Written& written) {
  const Json& report = written.report;
  fmt::print("{}: {} bytes\n", written.path, written.bytes);
  fmt::print("  verdict          {}, {}\n",
             report["verdict"].get<std::string>(),
             report["difference"].get<std::string>());
  fmt::print(
      "  in it            {} calls and signals without what they point to, {} "
      "blocks by place, the instructions of two, {} mappings\n",
      report["inputs"].size(), report["blocks"].size(),
      report["mappings_at_start"].size());
  fmt::print(
      "  not in it        memory, what calls read or wrote, command line, "
      "environment, output\n"
      "read it, then attach it to your report to those who gave you clew\n");
}

Json ToJson(const Written& written) {
  const Json& report = written.report;
  return {{"file", written.path},
          {"bytes", written.bytes},
          {"verdict", report["verdict"]},
          {"difference", report["difference"]},
          {"inputs", report["inputs"].size()},
          {"blocks", report["blocks"].size()},
          {"instructions", report["instructions"].size()},
          {"mappings", report["mappings_at_start"].size()}};
}

int RunReportBug(const ReportBugArguments& arguments) {
  const auto written = WriteReport(arguments);
  if (!written) {
    return ReportError(written.error());
  }
  if (arguments.json) {
    PrintJson(ToJson(*written));
  } else {
    PrintText(*written);
  }
  return kExitOk;
}

}  // namespace

void AddReportBug(Command& app, int& exit_code) {
  auto arguments = std::make_shared<ReportBugArguments>();
  Command* command = app.add_subcommand(
      "report-bug", "write a small extract that shows where clew is wrong");
  command->add_option("bundle", arguments->bundle, "bundle folder")->required();
  command->add_option("-o,--output", arguments->output,
                      "the file to write; without it BUNDLE.report.json");
  command
      ->add_option("--time-limit", arguments->time_limit_s,
                   "seconds until the search gives up")
      ->capture_default_str();
  command->add_flag("--json", arguments->json,
                    "say what was written as one JSON document");
  command->footer(kReportBugFooter);
  command->callback(
      [arguments, &exit_code] { exit_code = RunReportBug(*arguments); });
}

}  // namespace clew::cli
