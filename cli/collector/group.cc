#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/collector/collector_command.h"
#include "cli/subcommands.h"
#include "common/units.h"

namespace clew::cli {
namespace {

using transfer::RemoteGroup;
using transfer::RemoteGroupDetails;

constexpr const char* kGroupFooter =
    R"(A group is the bundles whose failures have one signature. Hosts among the
collector's 'readers' see groups, its 'engineers' change them; the collector's
journal says who did.

A resolved group opens again when it is seen in the version in which it is
resolved or in a later one; where no version is given, in one that the collector
has not seen yet. Hosts that still run an older one do not open it.

Exit codes:
  0  done; also if it was so already
  2  no such group, several whose ids begin so, or a text that is too long
  3  the collector cannot be reached, or this host may not

Examples:
  clew group list --open --program bank --signal SIGABRT --days 7
  clew group show 9be0c3
  clew group resolve 9be0c3
  clew group resolve 9be0c3 --in 41d7a2 --note 'locks the account, see #12'
  clew group note 9be0c3 'only on web3'
  clew group reopen 9be0c3
)";
constexpr const char* kSubFooter = "'clew help group' has examples.\n";

constexpr uint64_t kDaysMax = 36'500;

struct GroupListOptions {
  CollectorOptions collector;
  transfer::RemoteGroupQuery query;
  RowRange range;
  bool open = false;
  bool resolved = false;
  uint64_t days = 0;  // 0: at any time
  bool json = false;
};

struct GroupOptions {
  CollectorOptions collector;
  std::string id;
  std::string version;
  std::optional<std::string> note;
  bool json = false;
};

// ---- Printing

std::string Mark(const RemoteGroup& group) {
  if (group.resolved) {
    return "resolved";
  }
  return group.reopened_in.empty() ? "open" : "seen again";
}

std::string MarkInWords(const RemoteGroup& group) {
  if (group.resolved && group.resolved_in.empty()) {
    return "resolved in whatever version comes next";
  }
  if (group.resolved) {
    return fmt::format("resolved in version {}", Plain(group.resolved_in));
  }
  if (!group.reopened_in.empty()) {
    return fmt::format("open: seen again in version {}",
                       Plain(group.reopened_in));
  }
  return "open";
}

// The fields that /api/groups.json has, with its names.
Json ToJson(const RemoteGroup& group) {
  return {{"signature", group.signature},
          {"title", group.title},
          {"program", group.program},
          {"bundles", group.bundles},
          {"host_count", group.hosts},
          {"first_seen_s", group.first_seen_s},
          {"last_seen_s", group.last_seen_s},
          {"state", group.state},
          {"why", group.why},
          {"representative",
           group.representative.empty() ? Json() : Json(group.representative)},
          {"first_version", group.first_version},
          {"last_version", group.last_version},
          {"resolved", group.resolved},
          {"resolved_in", group.resolved_in},
          {"reopened_in", group.reopened_in},
          {"note", group.note},
          {"changed_by", group.changed_by},
          {"changed_at_s", group.changed_at_s}};
}

Json ToJson(const RemoteGroupDetails& details) {
  Json document = ToJson(details.group);
  Json versions = Json::array();
  for (const transfer::RemoteVersion& version : details.versions) {
    versions.push_back({{"version", version.version},
                        {"first_seen_s", version.first_seen_s},
                        {"last_seen_s", version.last_seen_s}});
  }
  document["versions"] = std::move(versions);
  return document;
}

void PrintRows(const transfer::RemotePage<RemoteGroup>& page) {
  fmt::print("{:<12}  {:<20}  {:>7}  {:>5}  {:<13}  {:<10}  {}\n", "GROUP",
             "LAST SEEN", "BUNDLES", "HOSTS", "STATE", "MARK", "TITLE");
  for (const RemoteGroup& group : page.rows) {
    fmt::print("{:<12}  {:<20}  {:>7}  {:>5}  {:<13}  {:<10}  {}\n",
               ShortId(group.signature), TimeText(group.last_seen_s),
               group.bundles, group.hosts, Plain(group.state), Mark(group),
               Plain(group.title));
  }
  fmt::print("{} of {} groups\n", page.rows.size(), page.total);
}

void PrintField(const char* name, const std::string& value) {
  fmt::print("{:<9} {}\n", name, value);
}

void PrintMark(const RemoteGroup& group) {
  PrintField("mark", MarkInWords(group));
  if (!group.note.empty()) {
    PrintField("note", Plain(group.note));
  }
  if (group.changed_at_s != 0) {
    PrintField("changed", fmt::format("{} by {}", TimeText(group.changed_at_s),
                                      Plain(group.changed_by)));
  }
}

void PrintVersions(const RemoteGroupDetails& details) {
  if (!details.versions.empty()) {
    PrintField("first in", "version " + Plain(details.group.first_version));
  }
  for (const transfer::RemoteVersion& version : details.versions) {
    PrintField("version", fmt::format("{}, {} to {}", Plain(version.version),
                                      TimeText(version.first_seen_s),
                                      TimeText(version.last_seen_s)));
  }
}

void PrintDetails(const RemoteGroupDetails& details) {
  const RemoteGroup& group = details.group;
  PrintField("group", group.signature);
  PrintField("title", Plain(group.title));
  PrintField("program", Plain(group.program));
  PrintField("state", Plain(group.state));
  if (!group.why.empty()) {
    PrintField("why", Plain(group.why));
  }
  PrintField("seen", fmt::format("{} to {}", TimeText(group.first_seen_s),
                                 TimeText(group.last_seen_s)));
  PrintField("bundles",
             fmt::format("{}, hosts {}", group.bundles, group.hosts));
  PrintField("furthest", Plain(group.representative));
  PrintVersions(details);
  PrintMark(group);
}

// ---- What the commands do

Status RunGroupList(const GroupListOptions& options) {
  transfer::RemoteGroupQuery query = options.query;
  if (options.open != options.resolved) {
    query.resolved = options.resolved;
  }
  if (options.days > 0) {
    const auto now_s = static_cast<int64_t>(std::time(nullptr));
    query.since_s =
        std::max(int64_t{1}, now_s - kDay_s * static_cast<int64_t>(std::min(
                                                  options.days, kDaysMax)));
  }
  CLEW_ASSIGN_OR_RETURN(page, FetchRows(options.collector, options.range, query,
                                        &transfer::Client::ListGroups));
  if (!options.json) {
    PrintRows(page);
    return {};
  }
  Json rows = Json::array();
  for (const RemoteGroup& group : page.rows) {
    rows.push_back(ToJson(group));
  }
  PrintJson({{"total", page.total}, {"groups", std::move(rows)}});
  return {};
}

Status RunShow(const GroupOptions& options) {
  CLEW_ASSIGN_OR_RETURN(client, MakeClient(options.collector));
  CLEW_ASSIGN_OR_RETURN(details, client->GetGroup(options.id));
  if (options.json) {
    PrintJson(ToJson(details));
  } else {
    PrintDetails(details);
  }
  return {};
}

Status Change(const GroupOptions& options, std::optional<bool> resolved) {
  CLEW_ASSIGN_OR_RETURN(client, MakeClient(options.collector));
  CLEW_ASSIGN_OR_RETURN(
      group, client->ChangeGroup(options.id, {.resolved = resolved,
                                              .version = options.version,
                                              .note = options.note}));
  if (options.json) {
    PrintJson(ToJson(group));
    return {};
  }
  PrintField("group", group.signature);
  PrintMark(group);
  return {};
}

Status RunResolve(const GroupOptions& options) { return Change(options, true); }
Status RunReopen(const GroupOptions& options) { return Change(options, false); }
Status RunNote(const GroupOptions& options) {
  return Change(options, std::nullopt);
}

// ---- Options

void AddGroupList(Command& parent, int& exit_code) {
  auto options = std::make_shared<GroupListOptions>();
  Command* command = AddCollectorCommand(
      parent, {"list", "the groups, that seen last first", kSubFooter}, options,
      &RunGroupList, exit_code);
  command->add_flag("--open", options->open, "only those not resolved");
  command->add_flag("--resolved", options->resolved, "only resolved ones");
  transfer::RemoteGroupQuery& query = options->query;
  command->add_flag("--reopened", query.reopened, "only those seen again");
  command->add_option("--state", query.state, "only in this state")
      ->check(IsMember{{"stored", "analysing", "solving", "witness",
                        "contradiction", "unsolved"}});
  command->add_option("--text", query.text,
                      "only with this in title, host or unit");
  command->add_option("--program", query.program, "only of this program");
  command->add_option("--version", query.version,
                      "only seen in this version, or first digits of it");
  command->add_option("--signal", query.failure,
                      "only of this failure: SIGABRT, 'signal 6', ...");
  command->add_option("--host", query.host, "only seen on this host");
  command->add_option("--unit", query.unit, "only seen in this unit");
  command->add_option("--days", options->days,
                      "only seen in the last so many days");
  AddRowRange(*command, options->range);
}

Command* AddOne(Command& parent, const char* name, const char* about,
                const std::shared_ptr<GroupOptions>& options,
                Status (*run)(const GroupOptions&), int& exit_code) {
  Command* command = AddCollectorCommand(parent, {name, about, kSubFooter},
                                         options, run, exit_code);
  AddId(*command, options->id);
  return command;
}

void AddNote(Command& command, GroupOptions& options) {
  command.add_option("--note", options.note,
                     "what people should know, on one line; '': nothing");
}

}  // namespace

void AddGroup(Command& app, int& exit_code) {
  Command* command = app.add_subcommand(
      "group", "what is known and said of failures that are the same");
  command->footer(kGroupFooter);
  command->require_subcommand(1);
  AddGroupList(*command, exit_code);
  auto options = std::make_shared<GroupOptions>();
  AddOne(*command, "show", "one group, its versions, what engineers said",
         options, &RunShow, exit_code);
  Command* resolve = AddOne(*command, "resolve", "say that it is mended",
                            options, &RunResolve, exit_code);
  resolve->add_option("--in", options->version,
                      "the version from which on it is, or its first digits");
  AddNote(*resolve, *options);
  AddNote(*AddOne(*command, "reopen", "say that it is not", options, &RunReopen,
                  exit_code),
          *options);
  AddOne(*command, "note", "leave a note for others", options, &RunNote,
         exit_code)
      ->add_option("text", options->note, "one line; '': no note any more")
      ->required();
}

}  // namespace clew::cli
