#include "cli/failure_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/text/signal_text.h"

namespace clew::cli {

std::string FailureText(const Failure& failure) {
  switch (failure.kind) {
    case FailureKind::kSignal:
      return fmt::format("{} in thread {} at {:#x}", SignalText(failure.signal),
                         failure.thread, failure.ip);
    case FailureKind::kExit:
    case FailureKind::kNone:
      return fmt::format("exit status {}", failure.exit_status);
    case FailureKind::kHang:
    case FailureKind::kTimeLimit:
      return std::string(ToString(failure.kind));
  }
  return "unknown";
}

std::string OutcomeText(const Failure& failure) {
  const std::string text = FailureText(failure);
  return failure.kind == FailureKind::kNone
             ? fmt::format("did not fail ({})", text)
             : "failed: " + text;
}

std::string FailureDetails(const Failure& failure) {
  std::string text = FailureText(failure);
  switch (failure.kind) {
    case FailureKind::kNone:
      return "none; " + text;
    case FailureKind::kSignal:
      return fmt::format("{}, address {:#x}", text, failure.addr);
    case FailureKind::kExit:
      return fmt::format("{} by thread {}", text, failure.thread);
    case FailureKind::kHang:
      return text + ": no thread could go on";
    case FailureKind::kTimeLimit:
      return text + ": the program had not ended when it was over";
  }
  return text;
}

Json FailureJson(const Failure& failure) {
  return {{"kind", ToString(failure.kind)},
          {"signal", failure.signal},
          {"exit_status", failure.exit_status},
          {"thread", failure.thread.as_int()},
          {"ip", fmt::format("{:#x}", failure.ip)},
          {"addr", fmt::format("{:#x}", failure.addr)}};
}

}  // namespace clew::cli
