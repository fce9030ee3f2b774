#ifndef CLEW_DAEMON_NOTIFY_H_
#define CLEW_DAEMON_NOTIFY_H_

#include <cstdint>
#include <string>

namespace clew::daemon {

// What a service tells systemd (sd_notify(3)): lines such as READY=1. Nothing
// happens where nobody listens.
void Notify(const std::string& lines);

// How often WATCHDOG=1 is to come, half of what systemd allows; 0: never.
uint64_t WatchdogPeriodMs();

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_NOTIFY_H_
