#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/collector_options.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "common/progress.h"
#include "transfer/client.h"

namespace clew::cli {
namespace {

constexpr uint32_t kRowsAtOnce = 1000;
constexpr size_t kIdDigits = 12;  // enough for people, and for clew get

constexpr const char* kFooter =
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
  uint64_t limit = 50;
  bool json = false;
};

std::string TimeText(int64_t time_s) {
  if (time_s == 0) {
    return "-";
  }
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(static_cast<std::time_t>(time_s)));
}

// What a stranger's text may do to a terminal, it must not.
std::string Plain(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  return text.empty() ? "-" : text;
}

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

void PrintText(const transfer::RemotePage& page) {
  fmt::print("{:<12}  {:<20}  {:<16}  {:<13}  {:<24}  {}\n", "BUNDLE",
             "RECEIVED", "HOST", "STATE", "FAILURE", "COMMAND");
  for (const transfer::RemoteBundle& bundle : page.bundles) {
    fmt::print("{:<12}  {:<20}  {:<16}  {:<13}  {:<24}  {}\n",
               bundle.id.hex().substr(0, kIdDigits),
               TimeText(bundle.received_at_s), Plain(bundle.host),
               bundle.damaged ? "damaged" : Plain(bundle.state),
               Plain(bundle.failure), Plain(bundle.command));
  }
  fmt::print("{} of {} bundles\n", page.bundles.size(), page.total);
}

// Page by page, until `limit` are there.
Result<transfer::RemotePage> Fetch(const ListOptions& options) {
  CLEW_ASSIGN_OR_RETURN(client,
                        MakeClient(options.collector, kAttemptsForList));
  transfer::RemotePage all;
  transfer::RemoteQuery query = options.query;
  while (all.bundles.size() < options.limit) {
    query.limit = static_cast<uint32_t>(
        std::min<uint64_t>(kRowsAtOnce, options.limit - all.bundles.size()));
    CLEW_ASSIGN_OR_RETURN(page, client->List(query));
    all.total = page.total;
    query.offset += page.bundles.size();
    all.bundles.insert(all.bundles.end(), page.bundles.begin(),
                       page.bundles.end());
    if (page.bundles.size() < query.limit) {
      break;
    }
  }
  return all;
}

Status RunList(const ListOptions& options) {
  CLEW_ASSIGN_OR_RETURN(page, Fetch(options));
  if (!options.json) {
    PrintText(page);
    return {};
  }
  Json rows = Json::array();
  for (const transfer::RemoteBundle& bundle : page.bundles) {
    rows.push_back(ToJson(bundle));
  }
  PrintJson({{"total", page.total}, {"bundles", std::move(rows)}});
  return {};
}

}  // namespace

void AddList(Command& app, int& exit_code) {
  auto options = std::make_shared<ListOptions>();
  Command* command =
      app.add_subcommand("list", "the bundles that the collector has");
  AddCollectorOptions(*command, options->collector);
  command->add_option("--host", options->query.host, "only of this host");
  command->add_option("--group", options->query.signature,
                      "only of the group with this signature");
  command->add_option("--offset", options->query.offset, "leave out so many")
      ->capture_default_str();
  command->add_option("--limit", options->limit, "at most so many")
      ->capture_default_str();
  command->add_flag("--json", options->json, "one JSON document");
  command->footer(kFooter);
  command->callback(
      [=, &exit_code] { exit_code = ReportStatus(RunList(*options)); });
}

}  // namespace clew::cli
