#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/collector/collector_options.h"
#include "cli/host/host_checks.h"
#include "cli/host/software_selftest.h"
#include "cli/host/unit_checks.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "common/check.h"
#include "common/os/own_file.h"
#include "common/os/scratch_folder.h"
#include "transfer/client_config.h"

namespace clew::cli {
namespace {

using recorder::perf::SelfTestStep;
using recorder::perf::StepOutcome;

constexpr const char* kDoctorFooter =
    R"(--selftest takes a second or two. It records a program that loses a race
(record --source tracer), decodes the trace, finds the interleaving and replays
it; then it goes the way of a recording with Intel PT. Nothing that it writes
stays.

Exit codes:
  0  recording in software and replay under gdb can work here; with --selftest:
     every step passed
  3  something that they need is missing; with --selftest: a step failed or
     could not be run

Examples:
  clew doctor
  clew doctor --selftest
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

// Checks whether the collector of client.conf knows this host. If MakeClient
// fails with kInvalidArgument, none is configured and none is called.
HostCheck CheckCollector() {
  HostCheck check = {.name = "collector"};
  const CollectorOptions options = {.collector = "",
                                    .config = transfer::kClientConfig};
  const auto client = MakeClient(options, /*attempts_max=*/1);
  if (!client) {
    check.found = "not asked";
    check.remedy = client.error().message;
    return check;
  }
  const auto status = (*client)->GetStatus();
  check.ok = status.has_value();
  check.found =
      check.ok ? fmt::format(
                     "{} knows this host as {:?}, which may send {} "
                     "more bytes today",
                     status->collector, status->host, status->bytes_left_today)
               : "does not answer, or refuses this host";
  check.remedy = check.ok ? "" : status.error().message;
  return check;
}

int RunDoctor(bool json) {
  auto checks = CheckHost({});
  for (HostCheck& check : CheckUnit(RunProgram, geteuid() == 0)) {
    checks.push_back(std::move(check));
  }
  checks.push_back(CheckCollector());
  if (json) {
    PrintJson(ToJson(checks));
  } else {
    PrintChecks(checks);
  }
  return CanRecordInSoftware(checks) ? kExitOk : kExitEnvironment;
}

const char* NameOf(StepOutcome outcome) {
  switch (outcome) {
    case StepOutcome::kPassed:
      return "pass";
    case StepOutcome::kFailed:
      return "FAIL";
    case StepOutcome::kNotRun:
      return "not run";
  }
  CLEW_CHECK(false, "outcome {}", static_cast<int>(outcome));
}

void PrintStep(const SelfTestStep& step) {
  fmt::print("{:<8} {:<18} {}\n", NameOf(step.outcome), step.name, step.detail);
  std::fflush(stdout);
}

Json ToJson(const std::vector<SelfTestStep>& steps) {
  Json list = Json::array();
  for (const SelfTestStep& step : steps) {
    list.push_back({{"name", step.name},
                    {"outcome", NameOf(step.outcome)},
                    {"detail", step.detail}});
  }
  return {{"steps", std::move(list)}};
}

std::string RaceProgram() {
  constexpr const char* kName = "clew-selftest-race";
  const std::string found = FirstFile(PlacesBeside(OwnProgram(), kName), X_OK);
  return found.empty() ? kName : found;  // the recorder says that there is none
}

int RunSelfTest(bool json) {
  const auto scratch = ScratchFolder::Make("clew-selftest");
  if (!scratch) {
    return ReportError(scratch.error());
  }
  const auto tell = [json](const SelfTestStep& step) {
    if (!json) {
      PrintStep(step);
    }
  };
  auto steps = TestSoftware(
      RunProgram,
      {.clew = OwnProgram(), .race = RaceProgram(), .folder = scratch->path()},
      tell);
  for (SelfTestStep& step : TestHardware({})) {
    tell(step);
    steps.push_back(std::move(step));
  }
  if (json) {
    PrintJson(ToJson(steps));
  }
  const bool passed = std::ranges::all_of(steps, [](const SelfTestStep& step) {
    return step.outcome == StepOutcome::kPassed;
  });
  return passed ? kExitOk : kExitEnvironment;
}

}  // namespace

void AddDoctor(Command& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  Command* command = app.add_subcommand(
      "doctor", "tell what this host can do, and what to do about each lack");
  command->add_flag("--json", *json, "print JSON");
  auto selftest = std::make_shared<bool>(false);
  command->add_flag("--selftest", *selftest,
                    "try each step from a failure to its replay, on this "
                    "CPU and with Intel PT");
  command->footer(kDoctorFooter);
  command->callback([=, &exit_code] {
    exit_code = *selftest ? RunSelfTest(*json) : RunDoctor(*json);
  });
}

}  // namespace clew::cli
