#include "daemon/unit_poller.h"

namespace clew::daemon {

void UnitPoller::Poll() {
  timer_ = parts_.loop.After(config_.unit_poll_s * 1000, [this] { Poll(); });
  for (const UnitEvent& event : units_.Poll(parts_.clock.MonotonicMs())) {
    const auto started = parts_.triggers.Begin({.kind = event.kind,
                                                .process = event.process,
                                                .unit = event.unit,
                                                .failure = event.failure,
                                                .with_core_dump = false});
    if (!started) {
      parts_.log.Once(Priority::kWarning, "not-saved", event.unit,
                      {{"unit", event.unit}, {"why", started.error().message}});
    }
  }
  LogErrors();
}

// Of the manager, or else of each unit; once while it lasts.
void UnitPoller::LogErrors() {
  if (!units_.error().empty()) {
    parts_.incidents.SetLast(units_.error());
    parts_.log.Once(Priority::kError, "units-not-watched", "",
                    {{"why", units_.error()}});
    return;
  }
  parts_.log.Over("units-not-watched", "");
  for (const UnitReport& report : Report()) {
    if (report.error.empty()) {
      parts_.log.Over("unit-not-watched", report.watched.name);
      continue;
    }
    parts_.incidents.SetLast(report.error);
    parts_.log.Once(Priority::kWarning, "unit-not-watched", report.watched.name,
                    {{"unit", report.watched.name}, {"why", report.error}});
  }
}

}  // namespace clew::daemon
