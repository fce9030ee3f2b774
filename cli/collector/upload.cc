#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/collector/collector_options.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "common/progress.h"
#include "transfer/client.h"

namespace clew::cli {
namespace {

constexpr const char* kUploadFooter =
    R"(Sends only what the collector lacks, and goes on where it was after a break.
Without a word of where the collector is, /etc/clew/client.conf is read:
  collector = collector.example.com:7790
  ca = /etc/clew/ca.crt
  certificate = /etc/clew/host.crt
  key = /etc/clew/host.key

Exit codes:
  0  the bundle is on the collector's disk
  2  refused: not a bundle, or the request makes no sense
  3  the collector cannot be reached, or does not know this host
  4  the bundle's bytes break the format
  5  refused: a quota or a limit

Examples:
  clew upload fail.clew
  clew upload --collector collector.example.com:7790 fail.clew
  CLEW_COLLECTOR=127.0.0.1:7790 clew upload --insecure-loopback fail.clew
  clew upload --json fail.clew | jq -r .bundle
)";

struct UploadOptions {
  CollectorOptions collector;
  std::string bundle;
  bool json = false;
};

Result<transfer::FileList> ListOf(const std::string& bundle) {
  TerminalProgress progress("read", "bytes");
  return transfer::FileList::OfBundle(bundle, {}, &progress);
}

Status RunUpload(const UploadOptions& options) {
  CLEW_ASSIGN_OR_RETURN(client, MakeClient(options.collector));
  transfer::UploadStats stats;
  CLEW_ASSIGN_OR_RETURN(list, ListOf(options.bundle));
  TerminalProgress progress("upload", "bytes");
  CLEW_RETURN_IF_ERROR(client->Upload(options.bundle, list, &progress, &stats));
  if (options.json) {
    PrintJson({{"bundle", list.id().hex()},
               {"bytes", stats.bytes},
               {"bytes_sent", stats.bytes_sent},
               {"attempts", stats.attempts}});
    return {};
  }
  fmt::print("{}: uploaded as {}; {}bytes, {}sent\n", options.bundle,
             list.id().hex(), WithMagnitude(static_cast<double>(stats.bytes)),
             WithMagnitude(static_cast<double>(stats.bytes_sent)));
  return {};
}

}  // namespace

void AddUpload(Command& app, int& exit_code) {
  auto options = std::make_shared<UploadOptions>();
  Command* command =
      app.add_subcommand("upload", "send a bundle to the collector");
  command->add_option("bundle", options->bundle, "bundle folder")->required();
  AddCollectorOptions(*command, options->collector);
  command->add_flag("--json", options->json, "one JSON document");
  command->footer(kUploadFooter);
  command->callback(
      [=, &exit_code] { exit_code = ReportStatus(RunUpload(*options)); });
}

}  // namespace clew::cli
