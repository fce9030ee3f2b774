#include <memory>
#include <string>

#include "cli/daemon/ask_daemon.h"
#include "cli/daemon/daemon_status.h"
#include "cli/subcommands.h"
#include "daemon/control/protocol.h"

namespace clew::cli {
namespace {

constexpr const char* kSnapshotFooter =
    R"(Asks clewd to save the last seconds of trace now, as a bundle. Of a unit that
runs under clewd-run the recording can only be ended: --end makes the program
abort, which leaves a bundle, and systemd starts the unit again if its Restart=
says so. 'clew daemon status' shows when the bundle was saved and sent.

Examples:
  clew snapshot 4711 --reason "answers slowly since 14:00"
  clew snapshot --unit server.service
  clew snapshot --unit server.service --end
)";

struct SnapshotOptions {
  daemon::SnapshotRequest request;
  AskOptions ask;
};

}  // namespace

void AddSnapshot(Command& app, int& exit_code) {
  auto options = std::make_shared<SnapshotOptions>();
  Command* command = app.add_subcommand(
      "snapshot", "have clewd save a process's or unit's trace now");
  command->footer(kSnapshotFooter);
  command->add_option("pid", options->request.process, "the process")
      ->check(PositiveNumber());
  command->add_option("--unit", options->request.unit, "the unit");
  command->add_flag("--end", options->request.end,
                    "a recording in software may be ended for it");
  command->add_option("--reason", options->request.reason,
                      "goes to clewd's log");
  command->add_option("--root", options->ask.root,
                      "where clewd's files are, for tests");
  command->add_flag("--json", options->ask.json, "report as JSON on stdout");
  command->callback([=, &exit_code] {
    exit_code = AskDaemon(options->ask, options->request, PrintDaemonSnapshot);
  });
}

}  // namespace clew::cli
