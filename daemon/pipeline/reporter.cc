#include "daemon/pipeline/reporter.h"

#include <utility>

#include "common/result.h"

namespace clew::daemon {

Reporter::Reporter(Loop& loop, std::function<uint64_t(uint64_t)> below,
                   std::function<void(const std::string& why)> ended)
    : loop_(loop), below_(std::move(below)), ended_(std::move(ended)) {}

Reporter::~Reporter() { loop_.Cancel(timer_); }

void Reporter::SetOptions(Options options) {
  if (options == options_) {
    return;
  }
  options_ = std::move(options);
  loop_.Cancel(std::exchange(timer_, 0));
  if (options_.period_ms > 0) {
    After(below_(options_.period_ms / 2 + 1));
  }
}

void Reporter::After(uint64_t delay_ms) {
  timer_ = loop_.After(delay_ms, [this] { Report(); });
}

void Reporter::Report() {
  const uint64_t period_ms = options_.period_ms;
  After(period_ms - period_ms / 4 + below_(period_ms / 2 + 1));
  auto child =
      Child::Start(loop_, options_.arguments, {.time_ms = kChildMsMax},
                   [this](const ChildEnd& end) {
                     ended_(end.exit_status == kExitOk ? "" : end.Why());
                   });
  if (!child) {
    ended_(child.error().message);
    return;
  }
  child_ = *std::move(child);
}

}  // namespace clew::daemon
