#include "cli/daemon/report_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/daemon/status_fields.h"
#include "common/units.h"
#include "transfer/client.h"

namespace clew::cli {
namespace {

// The collector hears of the host again soon.
constexpr uint32_t kAttempts = 2;

uint64_t Sum(const Json& status, std::initializer_list<const char*> paths) {
  uint64_t sum = 0;
  for (const char* path : paths) {
    sum += Number(status, path);
  }
  return sum;
}

transfer::HostReport ReportOf(const Json& status) {
  transfer::HostReport report;
  report.version = Text(status, "version");
  report.state = Text(status, "state");
  report.source = Text(status, "source/kind");
  report.source_error = Text(status, "source/error");
  report.units_error = Text(status, "units_error");
  report.last_error = Text(status, "last_error/message");
  const Json at_ns = Part(status, "last_error/at_ns");
  report.last_error_at_s =
      at_ns.is_number_integer()
          ? at_ns.get<int64_t>() / static_cast<int64_t>(kNsPerSecond)
          : 0;
  report.uptime_s = Number(status, "uptime_s");
  report.stuck = Number(status, "spool/stuck/bundles");
  report.refused = Number(status, "spool/refused/bundles");
  report.spool_bundles = report.stuck + Sum(status, {"spool/incoming/bundles",
                                                     "spool/checking/bundles",
                                                     "spool/ready/bundles"});
  report.spool_bytes = Number(status, "spool/bytes");
  report.spool_bytes_max = Number(status, "spool/bytes_max");
  report.saved = Number(status, "counters/saved");
  report.not_saved =
      Sum(status, {"counters/refused_rate", "counters/refused_busy",
                   "counters/refused_budget", "counters/refused_no_source",
                   "counters/save_failures"});
  report.uploaded = Number(status, "counters/uploaded");
  report.lost = Number(status, "counters/lost");
  return report;
}

Status Tell(const AskOptions& ask, const CollectorOptions& collector) {
  CLEW_ASSIGN_OR_RETURN(status, AskDaemon(ask, daemon::StatusRequest()));
  CLEW_ASSIGN_OR_RETURN(client, MakeClient(collector, kAttempts));
  CLEW_ASSIGN_OR_RETURN(answer, client->Report(ReportOf(status)));
  if (answer == transfer::ReportAnswer::kUnknownCall) {
    fmt::print("the collector is of an earlier version and takes no reports\n");
  }
  return {};
}

}  // namespace

int ReportHost(const AskOptions& ask, const CollectorOptions& collector) {
  return ReportStatus(Tell(ask, collector));
}

}  // namespace clew::cli
