#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/collector/collector_command.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "common/os/file.h"
#include "common/progress.h"
#include "transfer/client.h"

namespace clew::cli {
namespace {

constexpr const char* kGetFooter =
    R"(The folder appears whole, every digest checked, or not at all. With it comes
the schedule that the collector found, if it found one.

Exit codes:
  0  the bundle is there
  2  no such bundle, several whose ids begin so, or the folder exists
  3  the collector cannot be reached, or does not know this host
  4  what came has not the digests that it must have

Examples:
  clew get 3f1c09a2
  clew get 3f1c09a2 -o crash.clew && clew replay --check 5 crash.clew
)";

struct GetOptions {
  CollectorOptions collector;
  std::string id;
  std::string out;
  bool json = false;
};

Status RunGet(const GetOptions& options) {
  CLEW_ASSIGN_OR_RETURN(client, MakeClient(options.collector));
  const std::string out =
      options.out.empty() ? ShortId(options.id) + ".clew" : options.out;
  TerminalProgress progress("get", "bytes");
  CLEW_ASSIGN_OR_RETURN(
      id, client->Get(options.id, out, PosixFileSystem(), &progress));
  if (options.json) {
    PrintJson({{"bundle", id.hex()}, {"folder", out}});
    return {};
  }
  fmt::print("{}: bundle {}\n", out, id.hex());
  return {};
}

}  // namespace

void AddGet(Command& app, int& exit_code) {
  auto options = std::make_shared<GetOptions>();
  Command* command =
      app.add_subcommand("get", "fetch a bundle from the collector");
  command
      ->add_option("id", options->id, "the first digits of its id, 4 or more")
      ->required();
  command->add_option("-o,--out", options->out,
                      "folder to make; <id>.clew if not given");
  AddCollectorOptions(*command, options->collector);
  command->add_flag("--json", options->json, "one JSON document");
  command->footer(kGetFooter);
  command->callback(
      [=, &exit_code] { exit_code = ReportStatus(RunGet(*options)); });
}

}  // namespace clew::cli
