#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bundle/bundle.h"
#include "bundle/manifest/manifest_edit.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "common/os/file.h"
#include "common/progress.h"
#include "decoder/sufficiency.h"

namespace clew::cli {
namespace {

using bundle::Bundle;
using bundle::EditManifest;
using decoder::SufficiencyReport;

constexpr const char* kCheckFooter =
    R"(Decodes the whole trace and looks at what else the bundle has. The score is 100
if nothing is missing; docs/format/bundle.md says how it is made.

Exit codes:
  0  nothing is missing that solving needs
  1  a finding: something is; the reasons say what
  4  a file of the bundle breaks its format
  5  a limit was reached; the rest of the trace was not looked at
With --write they are the same, if the manifest could be written.

Examples:
  clew check fail.clew
  clew check --write fail.clew       # and note it in the manifest
  clew check --json fail.clew | jq .score
)";

struct CheckOptions {
  std::string bundle;
  bool json = false;
  bool write = false;
  uint32_t time_limit_s = 600;
};

void PrintReport(const SufficiencyReport& report) {
  const Sufficiency& found = report.sufficiency;
  fmt::print("score           {} of 100\n", found.score);
  fmt::print("solvable        {}\n",
             report.solvable ? "nothing that solving needs is missing" : "no");
  fmt::print("images missing  {}\n", found.images_missing);
  fmt::print("gaps            {}, {} in the last second\n", found.gaps,
             found.gaps_at_failure);
  for (const std::string& reason : found.reasons) {
    fmt::print("- {}\n", reason);
  }
}

Json ToJson(const SufficiencyReport& report) {
  const Sufficiency& found = report.sufficiency;
  return {
      {"score", found.score},        {"decodes", found.decodes},
      {"solvable", report.solvable}, {"corrupt", report.corrupt},
      {"limited", report.limited},   {"images_missing", found.images_missing},
      {"gaps", found.gaps},          {"gaps_at_failure", found.gaps_at_failure},
      {"reasons", found.reasons}};
}

int ExitCodeOf(const SufficiencyReport& report) {
  if (report.corrupt) {
    return kExitCorrupt;
  }
  if (report.limited) {
    return kExitLimit;
  }
  return report.solvable ? kExitOk : kExitFinding;
}

Result<SufficiencyReport> Check(const CheckOptions& options) {
  CLEW_ASSIGN_OR_RETURN(bundle, Bundle::Open(options.bundle));
  TerminalProgress progress("check", "insn");
  return decoder::CheckSufficiency(
      bundle, {.time_max = std::chrono::seconds(options.time_limit_s)},
      &progress);
}

int RunCheck(const CheckOptions& options) {
  const auto report = Check(options);
  if (!report) {
    return ReportError(report.error());
  }
  if (options.json) {
    PrintJson(ToJson(*report));
  } else {
    PrintReport(*report);
  }
  if (options.write) {
    const Status written = EditManifest(PosixFileSystem(), options.bundle,
                                        {.sufficiency = report->sufficiency});
    if (!written) {
      return ReportError(written.error());
    }
  }
  return ExitCodeOf(*report);
}

}  // namespace

void AddCheck(Command& app, int& exit_code) {
  auto options = std::make_shared<CheckOptions>();
  Command* command = app.add_subcommand(
      "check", "say whether a bundle has what solving needs");
  command->add_option("bundle", options->bundle, "bundle folder")->required();
  command->add_flag("--json", options->json, "one JSON document");
  command->add_flag("--write", options->write,
                    "note the result in the bundle's manifest");
  command
      ->add_option("--time-limit", options->time_limit_s,
                   "seconds after which decoding ends")
      ->check(Range(1, 86400))
      ->capture_default_str();
  command->footer(kCheckFooter);
  command->callback([=, &exit_code] { exit_code = RunCheck(*options); });
}

}  // namespace clew::cli
