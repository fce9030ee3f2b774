#ifndef CLEW_DAEMON_SOURCE_PERF_SOURCE_H_
#define CLEW_DAEMON_SOURCE_PERF_SOURCE_H_

#include <memory>
#include <string>

#include "common/result.h"
#include "daemon/config/config.h"
#include "daemon/source/inspector.h"
#include "daemon/source/source.h"

namespace clew::daemon {

// Opens a source that takes snapshots of perf_event on all CPUs, of PT or of
// the sideband alone, as `config` says. It records from then on. Fails with
// kUnsupported if this host has no PT, and with kSystem if we are not
// permitted; the message says what would help.
[[nodiscard]] Result<std::unique_ptr<PtSource>> OpenPerfSource(
    const Config& config, const LookTimes& times);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SOURCE_PERF_SOURCE_H_
