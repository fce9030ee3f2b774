#include "tests/fidelity/outcome.h"

#include <array>

#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::fidelity {
namespace {

constexpr std::array<std::string_view, kClasses> kNames = {
    "same",          "refused",   "doubted",        "unfollowed",
    "model differs", "no answer", "replay differs", "endless",
    "killed",        "made up",   "impossible",     "broken"};

// timeout(1) ended it; it returns 137 where SIGTERM did not help.
constexpr int kKilledByTimeout = 137;
bool TimedOut(int status) {
  return status == e2e::kTimedOut || status == kKilledByTimeout;
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The last line of the text that has `part`, else its last one.
std::string LineWith(std::string_view text, std::string_view part) {
  std::string_view found;
  std::string_view last;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    last = text.substr(0, end);
    found = Has(last, part) ? last : found;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::string(found.empty() ? last : found);
}

Outcome OtherEnd(const Ran& recorded) {
  const bool doubted = Has(recorded.err, "may be the recorder's");
  const std::string said = LineWith(recorded.out, "line ");
  return {
      doubted ? Class::kDoubted : Class::kMadeUp,
      said.empty() || said == "ok" ? LineWith(recorded.err, "clew: ") : said};
}

std::optional<Outcome> SettledByRecord(const Ran& native, const Ran& recorded) {
  if (TimedOut(recorded.exit_status)) {
    return Outcome{Class::kEndless, "record did not end"};
  }
  if (recorded.exit_status == kExitEnvironment) {
    return Outcome{Class::kRefused, LineWith(recorded.err, "clew: ")};
  }
  if (recorded.exit_status > 128) {
    return Outcome{Class::kKilled,
                   fmt::format("signal {}", recorded.exit_status - 128)};
  }
  if (recorded.exit_status != kExitOk && recorded.exit_status != kExitFinding) {
    return Outcome{Class::kBroken, LineWith(recorded.err, "clew: ")};
  }
  if (recorded.exit_status == kExitFinding || recorded.out != native.out) {
    return OtherEnd(recorded);
  }
  return std::nullopt;
}

// The place of the contradiction where one is told.
std::string SaidBy(const Ran& solved) {
  for (const char* place : {"in conflict", "furthest run"}) {
    if (Has(solved.out, place)) {
      return LineWith(solved.out, place);
    }
  }
  return LineWith(solved.out + solved.err, "clew");
}

std::optional<Outcome> SettledBySolve(const Ran& solved) {
  const std::string said = SaidBy(solved);
  if (TimedOut(solved.exit_status) || solved.exit_status == kExitLimit) {
    return Outcome{Class::kNoAnswer, said};
  }
  switch (solved.exit_status) {
    case kExitOk:
      return std::nullopt;
    case kExitFinding:
      return Outcome{Class::kImpossible, said};
    case kExitEnvironment:
      return Outcome{Class::kUnfollowed, said};
    default:
      return Outcome{Has(solved.out + solved.err, "model of the kernel")
                         ? Class::kModelDiffers
                         : Class::kBroken,
                     said};
  }
}

}  // namespace

std::string_view NameOf(Class which) {
  return kNames[static_cast<size_t>(which)];
}

std::optional<Class> ClassNamed(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) {
      return static_cast<Class>(i);
    }
  }
  return std::nullopt;
}

std::optional<Outcome> SettledBy(const Runs& runs) {
  if (const auto outcome = SettledByRecord(runs.native, runs.recorded)) {
    return outcome;
  }
  if (!runs.solved) {
    return std::nullopt;
  }
  if (const auto outcome = SettledBySolve(*runs.solved)) {
    return outcome;
  }
  if (!runs.replayed) {
    return std::nullopt;
  }
  const Ran& replayed = *runs.replayed;
  if (replayed.exit_status == kExitOk && replayed.out == runs.native.out) {
    return Outcome{};
  }
  return Outcome{Class::kReplayDiffers, LineWith(replayed.err, "clew: ")};
}

}  // namespace clew::fidelity
