#include "daemon/loop/notify.h"

#include <systemd/sd-daemon.h>

namespace clew::daemon {

void Notify(const std::string& lines) {
  // A supervisor that does not take it will find out by itself.
  (void)sd_notify(0, lines.c_str());
}

uint64_t WatchdogPeriodMs() {
  uint64_t period_us = 0;
  return sd_watchdog_enabled(0, &period_us) > 0 ? period_us / 2000 : 0;
}

}  // namespace clew::daemon
