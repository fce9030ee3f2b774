#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/collector/collector_command.h"
#include "cli/subcommands.h"

namespace clew::cli {
namespace {

constexpr const char* kScrubFooter =
    R"(The collector reads every byte of the bundle from its disk. What is damaged
heals when a host sends the bundle again, or another one that has the same
chunk. The collector's configuration names who may ask ('engineers').

Exit codes:
  0  the bundle is whole
  2  no such bundle, or several whose ids begin so
  3  the collector cannot be reached, or this host may not
  4  the bundle is damaged

Example:
  clew scrub 3f1c09a2
)";

struct ScrubOptions {
  CollectorOptions collector;
  std::string id;
  bool json = false;
};

void Print(const transfer::RemoteCheck& found, bool json) {
  if (json) {
    PrintJson({{"bundle", found.id.hex()},
               {"bytes_read", found.bytes_read},
               {"faults", found.faults}});
    return;
  }
  fmt::print("bundle {}: {} bytes read, {} faults\n", found.id.hex(),
             found.bytes_read, found.faults.size());
  for (const std::string& fault : found.faults) {
    fmt::print("{}\n", fault);
  }
}

Status RunScrub(const ScrubOptions& options) {
  CLEW_ASSIGN_OR_RETURN(client, MakeClient(options.collector));
  CLEW_ASSIGN_OR_RETURN(found, client->Check(options.id));
  Print(found, options.json);
  if (!found.faults.empty()) {
    return CorruptInput("bundle {} is damaged on the collector's disk",
                        found.id.hex());
  }
  return {};
}

}  // namespace

void AddScrub(Command& app, int& exit_code) {
  auto options = std::make_shared<ScrubOptions>();
  Command* command = AddCollectorCommand(
      app,
      {"scrub", "have the collector read a bundle from its disk", kScrubFooter},
      options, &RunScrub, exit_code);
  AddId(*command, options->id);
}

}  // namespace clew::cli
