#ifndef CLEW_CLI_COLLECTOR_COLLECTOR_COMMAND_H_
#define CLEW_CLI_COLLECTOR_COLLECTOR_COMMAND_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "cli/collector/collector_options.h"
#include "cli/report.h"
#include "common/result.h"
#include "transfer/client.h"

// What commands that ask the collector share: options, pages of rows, and how
// ids, times and strangers' texts are printed.

namespace clew::cli {

struct CommandText {
  const char* name;
  const char* about;
  const char* footer;
};

// Adds the command with the collector's options and --json; Options has
// `collector` and `json`.
template <class Options>
Command* AddCollectorCommand(Command& parent, const CommandText& text,
                             const std::shared_ptr<Options>& options,
                             Status (*run)(const Options&), int& exit_code) {
  Command* command = parent.add_subcommand(text.name, text.about);
  AddCollectorOptions(*command, options->collector);
  command->add_flag("--json", options->json, "one JSON document");
  command->footer(text.footer);
  command->callback(
      [=, &exit_code] { exit_code = ReportStatus(run(*options)); });
  return command;
}

// Which one: the first digits of its id.
void AddId(Command& command, std::string& id);

// Which rows of how many.
struct RowRange {
  uint64_t offset = 0;
  uint64_t limit = 50;
};
void AddRowRange(Command& command, RowRange& range);

inline constexpr uint32_t kRowsAtOnce = 500;  // that a collector gives of each

// Fetches what matches `query`, page by page.
template <class Row, class Query>
[[nodiscard]] Result<transfer::RemotePage<Row>> FetchRows(
    const CollectorOptions& collector, const RowRange& range, Query query,
    Result<transfer::RemotePage<Row>> (transfer::Client::*ask)(const Query&)) {
  CLEW_ASSIGN_OR_RETURN(client, MakeClient(collector, kAttemptsForList));
  transfer::RemotePage<Row> all;
  query.offset = range.offset;
  while (all.rows.size() < range.limit) {
    query.limit = static_cast<uint32_t>(
        std::min<uint64_t>(kRowsAtOnce, range.limit - all.rows.size()));
    CLEW_ASSIGN_OR_RETURN(page, ((*client).*ask)(query));
    all.total = page.total;
    query.offset += page.rows.size();
    all.rows.insert(all.rows.end(), page.rows.begin(), page.rows.end());
    if (page.rows.size() < query.limit) {
      break;
    }
  }
  return all;
}

// Enough digits of an id for people, and for the next command.
std::string ShortId(const std::string& id);
// "2026-11-23T06:45:41Z"; "-": 0, or no time that a calendar has.
std::string TimeText(int64_t time_s);
// What a stranger's text may do to a terminal, it must not; "-": empty.
std::string Plain(std::string text);

}  // namespace clew::cli

#endif  // CLEW_CLI_COLLECTOR_COLLECTOR_COMMAND_H_
