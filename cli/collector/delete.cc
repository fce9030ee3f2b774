#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/collector/collector_command.h"
#include "cli/subcommands.h"

namespace clew::cli {
namespace {

constexpr const char* kDeleteFooter =
    R"(The bundle, its schedule and what was found out about it are removed from the
collector for good, chunks that other bundles need excepted. The collector's
configuration names who may ('engineers'), and its journal says who did.

Exit codes:
  0  it is gone
  2  no such bundle, or several whose ids begin so
  3  the collector cannot be reached, or this host may not

Example:
  clew delete 3f1c09a2
)";

struct DeleteOptions {
  CollectorOptions collector;
  std::string id;
  bool json = false;
};

Status RunDelete(const DeleteOptions& options) {
  CLEW_ASSIGN_OR_RETURN(client, MakeClient(options.collector));
  CLEW_ASSIGN_OR_RETURN(id, client->Delete(options.id));
  if (options.json) {
    PrintJson({{"bundle", id.hex()}});
    return {};
  }
  fmt::print("deleted bundle {}\n", id.hex());
  return {};
}

}  // namespace

void AddDelete(Command& app, int& exit_code) {
  auto options = std::make_shared<DeleteOptions>();
  Command* command = AddCollectorCommand(
      app, {"delete", "remove a bundle from the collector", kDeleteFooter},
      options, &RunDelete, exit_code);
  AddId(*command, options->id);
}

}  // namespace clew::cli
