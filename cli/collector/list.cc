#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/collector/collector_command.h"
#include "cli/subcommands.h"

namespace clew::cli {
namespace {

constexpr const char* kListFooter =
    R"(Latest first. A host sees the bundles that it sent; hosts among the
collector's 'readers' see all.

Exit codes:
  0  the list is printed, if empty
  3  the collector cannot be reached, or does not know this host

Examples:
  clew list
  clew list --host web1 --limit 10
  clew list --json | jq -r '.bundles[] | select(.state == "witness") | .id'
)";

struct ListOptions {
  CollectorOptions collector;
  transfer::RemoteQuery query;
  RowRange range;
  bool json = false;
};

Json ToJson(const transfer::RemoteBundle& bundle) {
  Json row = {{"id", bundle.id.hex()},
              {"host", bundle.host},
              {"unit", bundle.unit},
              {"command", bundle.command},
              {"source", bundle.source},
              {"failure", bundle.failure},
              {"recorded_at_s", bundle.recorded_at_s},
              {"received_at_s", bundle.received_at_s},
              {"size_bytes", bundle.size_bytes},
              {"state", bundle.state},
              {"damaged", bundle.damaged},
              {"signature", bundle.signature},
              {"grade", bundle.grade},
              {"why", bundle.why}};
  if (bundle.sufficiency) {
    row["sufficiency"] = *bundle.sufficiency;
  }
  return row;
}

void PrintText(const transfer::RemotePage<transfer::RemoteBundle>& page) {
  fmt::print("{:<12}  {:<20}  {:<16}  {:<13}  {:<24}  {}\n", "BUNDLE",
             "RECEIVED", "HOST", "STATE", "FAILURE", "COMMAND");
  for (const transfer::RemoteBundle& bundle : page.rows) {
    fmt::print("{:<12}  {:<20}  {:<16}  {:<13}  {:<24}  {}\n",
               ShortId(bundle.id.hex()), TimeText(bundle.received_at_s),
               Plain(bundle.host),
               bundle.damaged ? "damaged" : Plain(bundle.state),
               Plain(bundle.failure), Plain(bundle.command));
  }
  fmt::print("{} of {} bundles\n", page.rows.size(), page.total);
}

Status RunList(const ListOptions& options) {
  CLEW_ASSIGN_OR_RETURN(
      page, FetchRows(options.collector, options.range, options.query,
                      &transfer::Client::List));
  if (!options.json) {
    PrintText(page);
    return {};
  }
  Json rows = Json::array();
  for (const transfer::RemoteBundle& bundle : page.rows) {
    rows.push_back(ToJson(bundle));
  }
  PrintJson({{"total", page.total}, {"bundles", std::move(rows)}});
  return {};
}

}  // namespace

void AddList(Command& app, int& exit_code) {
  auto options = std::make_shared<ListOptions>();
  Command* command = AddCollectorCommand(
      app, {"list", "the bundles that the collector has", kListFooter}, options,
      &RunList, exit_code);
  command->add_option("--host", options->query.host, "only of this host");
  command->add_option("--group", options->query.signature,
                      "only of the group with this signature");
  AddRowRange(*command, options->range);
}

}  // namespace clew::cli
