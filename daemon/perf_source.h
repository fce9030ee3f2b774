#ifndef CLEW_DAEMON_PERF_SOURCE_H_
#define CLEW_DAEMON_PERF_SOURCE_H_

#include <memory>
#include <string>

#include "common/result.h"
#include "daemon/config.h"
#include "daemon/source.h"

namespace clew::daemon {

// Snapshots of perf_event on all CPUs, of PT or of the sideband alone, as
// `config` says. Records from then on.
//
// kUnsupported: no PT here. kSystem: not permitted; the message says what would
// help.
[[nodiscard]] Result<std::unique_ptr<PtSource>> OpenPerfSource(
    const Config& config);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_PERF_SOURCE_H_
