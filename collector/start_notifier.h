#ifndef CLEW_COLLECTOR_START_NOTIFIER_H_
#define CLEW_COLLECTOR_START_NOTIFIER_H_

#include <memory>

#include "collector/config.h"
#include "collector/log.h"
#include "collector/notify/notifier.h"
#include "common/result.h"

namespace clew::collector {

// A notifier as the configuration says; nullptr: it names no webhook, and
// nothing is queued. `log` must outlive it. kInvalidArgument: url, secret or
// program. kSystem. REQUIRES: the catalogue is there.
[[nodiscard]] Result<std::unique_ptr<Notifier>> StartNotifier(
    const CollectorConfig& config, Log& log);

// The secret is read again; on failure the old one holds.
[[nodiscard]] Status ReloadSecret(const CollectorConfig& config,
                                  Notifier& notifier);

// For `clew-collector test-webhook`: sends one notification at once, and tells
// what came of it. The collector may run. kInvalidArgument: the configuration
// names no webhook, or as StartNotifier. kSystem: it did not arrive, and why.
[[nodiscard]] Status SendTestNotification(const CollectorConfig& config);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_START_NOTIFIER_H_
