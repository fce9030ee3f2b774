#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "cli/host_checks.h"
#include "cli/report.h"
#include "cli/subcommands.h"

namespace clew::cli {
namespace {

constexpr const char* kFooter = R"(Exit codes:
  0  recording in software and replay under gdb can work here
  3  something that they need is missing

Examples:
  clew doctor
  clew doctor --json | jq '.checks[] | select(.ok | not) | .remedy'
)";

void PrintChecks(const std::vector<HostCheck>& checks) {
  for (const HostCheck& check : checks) {
    const char* mark = check.ok ? "ok" : check.required ? "MISSING" : "-";
    fmt::print("{:<8} {:<13} {}\n", mark, check.name, check.found);
    if (!check.ok) {
      fmt::print("{:<22} {}\n", "", check.remedy);
    }
  }
  fmt::print("\n{}\n", CanRecordInSoftware(checks)
                           ? "software recording, solve and replay can work"
                           : "software recording or replay cannot work yet");
}

Json ToJson(const std::vector<HostCheck>& checks) {
  Json list = Json::array();
  for (const HostCheck& check : checks) {
    Json entry = {{"name", check.name},
                  {"ok", check.ok},
                  {"required", check.required},
                  {"found", check.found}};
    if (!check.ok) {
      entry["remedy"] = check.remedy;
    }
    list.push_back(std::move(entry));
  }
  return {{"software_recording", CanRecordInSoftware(checks)},
          {"checks", std::move(list)}};
}

int RunDoctor(bool json) {
  const auto checks = CheckHost({});
  if (json) {
    PrintJson(ToJson(checks));
  } else {
    PrintChecks(checks);
  }
  return CanRecordInSoftware(checks) ? kExitOk : kExitEnvironment;
}

}  // namespace

void AddDoctor(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "doctor", "tell what this host can do, and what to do about each lack");
  command->add_flag("--json", *json, "print JSON");
  command->footer(kFooter);
  command->callback([=, &exit_code] { exit_code = RunDoctor(*json); });
}

}  // namespace clew::cli
