#ifndef CLEW_CLI_HOST_UNIT_CHECKS_H_
#define CLEW_CLI_HOST_UNIT_CHECKS_H_

#include <string>
#include <string_view>
#include <vector>

#include "cli/host/host_checks.h"
#include "cli/run_program.h"
#include "common/result.h"

namespace clew::cli {

// What clewd may do where it runs, which is less than what root may: the
// sources are opened by `clewd --try-sources` in a transient unit that has the
// restrictions of clewd.service as systemd has them now, drop-ins included.
// Two checks, "unit_sideband" and "unit_perf"; only the first where nothing can
// be tried. `run` runs systemctl and systemd-run. clewd.service itself is left
// alone.
std::vector<HostCheck> CheckUnit(const RunFunction& run, bool root);

// The command that runs `clewd --try-sources` that way. `shown` is what
// `systemctl show clewd.service` prints.
std::vector<std::string> CommandInUnit(std::string_view shown);

}  // namespace clew::cli

#endif  // CLEW_CLI_HOST_UNIT_CHECKS_H_
