#include "collector/catalogue/child_reports.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "collector/catalogue/text.h"

namespace clew::collector {
namespace {

using Json = nlohmann::json;

constexpr size_t kConflictsShown = 3;
// A larger number of seconds cannot be a measurement.
constexpr double kSecondsMax = 1e9;

// Returns a discarded value if `text` is not a JSON object.
Json Parse(std::string_view text) {
  Json json = Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json(Json::value_t::discarded);
}

// Empty where there is no such string.
std::string StringAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>()
                                                   : "";
}

// 0 where there is no such number; a version of rules is small.
int IntAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  const bool fits = found != json.end() && found->is_number_unsigned() &&
                    found->get<uint64_t>() <= 1000;
  return fits ? found->get<int>() : 0;
}

double SecondsAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  const double value =
      found != json.end() && found->is_number() ? found->get<double>() : 0;
  return value >= 0 && value <= kSecondsMax ? value : 0;
}

std::string Conflicts(const Json& json) {
  std::string text;
  const auto found = json.find("conflict");
  if (found == json.end() || !found->is_array()) {
    return text;
  }
  for (size_t i = 0; i < found->size() && i < kConflictsShown; ++i) {
    if ((*found)[i].is_string()) {
      text += (text.empty() ? "" : "; ") + (*found)[i].get<std::string>();
    }
  }
  return text;
}

std::string Difference(const Json& json) {
  const auto found = json.find("model_difference");
  return found == json.end() || !found->is_object() ? ""
                                                    : StringAt(*found, "text");
}

constexpr size_t kWaitsKept = 16;

Json ListAt(const Json& json, const char* name, size_t most) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) {
    return Json::array();
  }
  const auto kept = static_cast<ptrdiff_t>(std::min(most, found->size()));
  return Json(found->begin(), found->begin() + kept);
}

// As text; empty where there are none.
std::string Findings(const Json& json) {
  const Json kept = {{"races", ListAt(json, "races", SIZE_MAX)},
                     {"waits", ListAt(json, "waits", kWaitsKept)}};
  return kept["races"].empty() && kept["waits"].empty()
             ? ""
             : kept.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string NoAnswer(const Json& json) {
  const std::string reason = StringAt(json, "reason");
  return reason.empty() ? "no answer within the limits"
                        : "no answer: " + reason;
}

}  // namespace

Result<Analysis> ParseBacktraces(std::string_view json_untrusted) {
  const Json json = Parse(json_untrusted);
  if (json.is_discarded()) {
    return CorruptInput("clew backtrace: its output is no JSON object");
  }
  Analysis analysis = {.signature = StringAt(json, "signature"),
                       .title = StringAt(json, "title"),
                       .backtraces = std::string(json_untrusted),
                       .rules = IntAt(json, "signature_rules"),
                       .program = StringAt(json, "program"),
                       .version = StringAt(json, "version")};
  if (!transfer::FromHex(analysis.signature)) {
    return CorruptInput(
        "clew backtrace: signature is {:?}, needs 64 hexadecimal digits",
        CleanName(analysis.signature));
  }
  return analysis;
}

Result<SolveOutcome> ParseSolveReport(std::string_view json_untrusted,
                                      int exit_status) {
  const Json json = Parse(json_untrusted);
  const std::string verdict =
      json.is_discarded() ? "" : StringAt(json, "verdict");
  SolveOutcome outcome;
  outcome.seconds = json.is_discarded() ? 0 : SecondsAt(json, "seconds");
  if (exit_status == kExitOk && verdict == "witness") {
    outcome.state = BundleState::kWitness;
    outcome.grade = StringAt(json, "grade");
    outcome.races = Findings(json);
  } else if (exit_status == kExitFinding && verdict == "unsat") {
    outcome.state = BundleState::kContradiction;
    outcome.why = Conflicts(json);
  } else if (exit_status == kExitBug && verdict == "model-differs") {
    outcome.state = BundleState::kModelDiffers;
    outcome.why = Difference(json);
  } else if (exit_status == kExitLimit && verdict == "unknown") {
    outcome.why = NoAnswer(json);
  } else {
    return CorruptInput("clew solve: exit status {}, verdict {:?}", exit_status,
                        CleanName(verdict));
  }
  return outcome;
}

}  // namespace clew::collector
