#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/report.h"
#include "cli/subcommands.h"
#include "daemon/control.h"
#include "daemon/paths.h"

namespace clew::cli {
namespace {

constexpr uint64_t kAnswerMs = 10'000;

constexpr const char* kFooter =
    R"(Asks clewd to save the last seconds of trace now, as a bundle. Of a unit that
runs under clewd-run the recording can only be ended: --end makes the program
abort, which leaves a bundle, and systemd starts the unit again if its Restart=
says so. 'clew daemon status' shows when the bundle was saved and sent.

Examples:
  clew snapshot 4711 --reason "answers slowly since 14:00"
  clew snapshot --unit server.service
  clew snapshot --unit server.service --end
)";

struct Options {
  daemon::SnapshotRequest request;
  std::string root = "/";
  bool json = false;
};

int RunSnapshot(const Options& options) {
  const auto reply = daemon::Ask(daemon::Paths(options.root).socket,
                                 options.request, kAnswerMs);
  if (!reply) {
    return ReportError(reply.error());
  }
  const Json json = Json::parse(*reply, nullptr, false);
  if (options.json) {
    PrintJson(json);
  } else {
    fmt::print("{}\n", json.value("bundle", ""));
  }
  return kExitOk;
}

}  // namespace

void AddSnapshot(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "snapshot", "have clewd save a process's or unit's trace now");
  command->footer(kFooter);
  command->add_option("pid", options->request.process, "the process")
      ->check(CLI::PositiveNumber);
  command->add_option("--unit", options->request.unit, "the unit");
  command->add_flag("--end", options->request.end,
                    "a recording in software may be ended for it");
  command->add_option("--reason", options->request.reason,
                      "goes to clewd's log");
  command->add_option("--root", options->root,
                      "where clewd's files are, for tests");
  command->add_flag("--json", options->json, "report as JSON on stdout");
  command->callback([=, &exit_code] { exit_code = RunSnapshot(*options); });
}

}  // namespace clew::cli
