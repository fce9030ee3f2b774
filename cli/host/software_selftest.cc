#include "cli/host/software_selftest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/report.h"
#include "common/progress.h"
#include "common/text/one_line.h"

namespace clew::cli {
namespace {

using recorder::perf::SelfTestStep;
using recorder::perf::StepOutcome;

constexpr const char* kRunsMax = "50";
constexpr const char* kReplays = "5";
constexpr const char* kSolveSeconds = "60";

// What a command printed, if it ended with `wanted`; else what it said.
struct Answer {
  std::optional<Json> json;
  std::string why;
};

std::string_view LastLine(std::string_view text) {
  while (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  return text.substr(text.rfind('\n') + 1);
}

Answer Ask(const RunFunction& run, const std::vector<std::string>& command,
           int wanted) {
  const auto output = run(command);
  if (!output) {
    return {.json = {}, .why = output.error().message};
  }
  Json json = Json::parse(output->text, nullptr, /*allow_exceptions=*/false);
  if (output->exit_status == wanted && json.is_object()) {
    return {.json = std::move(json), .why = {}};
  }
  return {.json = {},
          .why = fmt::format("clew {} ended with exit status {}: {}",
                             command[1], output->exit_status,
                             Printable(LastLine(output->errors)))};
}

std::string Insns(const Json& json) {
  return WithMagnitude(json.value("instructions", 0.0)) + " instructions";
}

std::string OfRecord(const Json& json) {
  return fmt::format("a race was lost in run {}, as it should be; {}",
                     json.value("seed", uint64_t{0}), Insns(json));
}

std::string OfDecode(const Json& json) {
  const Json summary = json.value("summary", Json::object());
  return fmt::format("{}, {} gaps", Insns(summary),
                     summary.value("gaps", uint64_t{1}));
}

std::string OfSolve(const Json& json) {
  return fmt::format("{}, {} in {:.1f} s", json.value("verdict", ""),
                     json.value("grade", ""), json.value("seconds", 0.0));
}

std::string OfReplay(const Json&) {
  return fmt::format("{} of {} replays agree", kReplays, kReplays);
}

bool HasNoGap(const Json& json) {
  return json.value("summary", Json::object()).value("gaps", uint64_t{1}) == 0;
}

bool HasWitness(const Json& json) {
  return json.value("verdict", "") == "witness";
}

bool IsFine(const Json&) { return true; }

// One command, and what its report has to say.
struct Trial {
  const char* name;
  std::vector<std::string> command;
  int exit_status;
  bool (*passes)(const Json&);
  std::string (*detail)(const Json&);
};

SelfTestStep Try(const RunFunction& run, const Trial& trial) {
  const Answer answer = Ask(run, trial.command, trial.exit_status);
  SelfTestStep step = {.name = trial.name,
                       .outcome = StepOutcome::kFailed,
                       .detail = answer.why};
  if (answer.json) {
    step.detail = trial.detail(*answer.json);
    step.outcome = trial.passes(*answer.json) ? StepOutcome::kPassed
                                              : StepOutcome::kFailed;
  }
  return step;
}

}  // namespace

std::vector<SelfTestStep> TestSoftware(
    const RunFunction& run, const SelfTestFiles& files,
    const std::function<void(const SelfTestStep&)>& tell) {
  const std::string bundle = files.folder + "/race.clew";
  const Trial trials[] = {
      {"software record",
       {files.clew, "record", "--source", "tracer", "--until-fail", kRunsMax,
        "--json", "-o", bundle, "--", files.race},
       kExitFinding,
       IsFine,
       OfRecord},
      {"software decode",
       {files.clew, "decode", "--as", "none", "--json", bundle},
       kExitOk,
       HasNoGap,
       OfDecode},
      {"software solve",
       {files.clew, "solve", "--time-limit", kSolveSeconds, "--json", bundle},
       kExitOk,
       HasWitness,
       OfSolve},
      {"software replay",
       {files.clew, "replay", "--check", kReplays, "--json", bundle},
       kExitOk,
       IsFine,
       OfReplay}};
  std::vector<SelfTestStep> steps;
  std::string failed;  // the step that did
  for (const Trial& trial : trials) {
    steps.push_back(failed.empty()
                        ? Try(run, trial)
                        : SelfTestStep{.name = trial.name,
                                       .outcome = StepOutcome::kNotRun,
                                       .detail = "needs " + failed});
    if (steps.back().outcome == StepOutcome::kFailed) {
      failed = trial.name;
    }
    tell(steps.back());
  }
  return steps;
}

}  // namespace clew::cli
