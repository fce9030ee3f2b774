#ifndef CLEW_DAEMON_LOOP_NOTIFY_H_
#define CLEW_DAEMON_LOOP_NOTIFY_H_

#include <cstdint>
#include <string>

namespace clew::daemon {

// Tells systemd `lines` such as READY=1 (sd_notify(3)). Does nothing if nobody
// listens.
void Notify(const std::string& lines);

// Returns how often WATCHDOG=1 is to be sent: half of the time that systemd
// allows, or 0 for never.
uint64_t WatchdogPeriodMs();

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_LOOP_NOTIFY_H_
