#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/collector/collector_command.h"
#include "cli/subcommands.h"

namespace clew::cli {
namespace {

using transfer::HostReport;
using transfer::RemoteHost;

constexpr const char* kHostsFooter =
    R"(What each clewd said of itself last, those that want attention first: 'silent'
said nothing for a day; in 'trouble' its source or units have an error, or
bundles are stuck or were lost. For hosts among the collector's 'readers'. Who
never said anything is not there: 'upload' and 'report_period' of clewd.conf.

Exit codes:
  0  the list is printed, if empty
  3  the collector cannot be reached, or this host may not

Examples:
  clew hosts
  clew hosts --health silent
  clew hosts --json | jq -r '.hosts[] | select(.stuck > 0) | .host'
)";

struct HostsOptions {
  CollectorOptions collector;
  transfer::RemoteHostQuery query;
  RowRange range;
  bool json = false;
};

Json ToJson(const RemoteHost& host) {
  const HostReport& report = host.report;
  return {{"host", host.host},
          {"seen_at_s", host.seen_at_s},
          {"health", host.health},
          {"version", report.version},
          {"state", report.state},
          {"source", report.source},
          {"source_error", report.source_error},
          {"units_error", report.units_error},
          {"last_error", report.last_error},
          {"last_error_at_s", report.last_error_at_s},
          {"uptime_s", report.uptime_s},
          {"spool_bundles", report.spool_bundles},
          {"spool_bytes", report.spool_bytes},
          {"spool_bytes_max", report.spool_bytes_max},
          {"stuck", report.stuck},
          {"refused", report.refused},
          {"saved", report.saved},
          {"not_saved", report.not_saved},
          {"uploaded", report.uploaded},
          {"lost", report.lost}};
}

void PrintError(const char* what, const std::string& error) {
  if (!error.empty()) {
    fmt::print("  {}: {}\n", what, Plain(error));
  }
}

void PrintHost(const RemoteHost& host) {
  const HostReport& report = host.report;
  fmt::print("{:<20}  {:<7}  {:<20}  {:<9}  {:<9}  {:>6}  {:>5}  {:>5}\n",
             Plain(host.host), Plain(host.health), TimeText(host.seen_at_s),
             Plain(report.version), Plain(report.source), report.spool_bundles,
             report.stuck, report.lost);
  PrintError("source", report.source_error);
  PrintError("units", report.units_error);
  if (report.last_error != report.source_error &&
      report.last_error != report.units_error) {
    PrintError("last error", report.last_error);
  }
}

void PrintText(const transfer::RemotePage<RemoteHost>& page) {
  fmt::print("{:<20}  {:<7}  {:<20}  {:<9}  {:<9}  {:>6}  {:>5}  {:>5}\n",
             "HOST", "HEALTH", "LAST SEEN", "VERSION", "SOURCE", "UNSENT",
             "STUCK", "LOST");
  for (const RemoteHost& host : page.rows) {
    PrintHost(host);
  }
  fmt::print("{} of {} hosts\n", page.rows.size(), page.total);
}

Status RunHosts(const HostsOptions& options) {
  CLEW_ASSIGN_OR_RETURN(
      page, FetchRows(options.collector, options.range, options.query,
                      &transfer::Client::ListHosts));
  if (!options.json) {
    PrintText(page);
    return {};
  }
  Json rows = Json::array();
  for (const RemoteHost& host : page.rows) {
    rows.push_back(ToJson(host));
  }
  PrintJson({{"total", page.total}, {"hosts", std::move(rows)}});
  return {};
}

}  // namespace

void AddHosts(Command& app, int& exit_code) {
  auto options = std::make_shared<HostsOptions>();
  Command* command = AddCollectorCommand(
      app, {"hosts", "how the collector's hosts do", kHostsFooter}, options,
      &RunHosts, exit_code);
  command->add_option("--host", options->query.text,
                      "only with this in the name");
  command->add_option("--health", options->query.health, "only these")
      ->check(IsMember{{"silent", "trouble", "fine"}});
  AddRowRange(*command, options->range);
}

}  // namespace clew::cli
