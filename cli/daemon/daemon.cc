#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/daemon/ask_daemon.h"
#include "cli/daemon/daemon_status.h"
#include "cli/daemon/report_host.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "common/os/file.h"
#include "daemon/config/paths.h"
#include "daemon/core_pattern.h"

namespace clew::cli {
namespace {

constexpr const char* kDaemonFooter =
    R"(Talks to the clewd of this host: root and members of the group clew may.

Examples:
  clew daemon status
  clew daemon status --json | jq .counters
  clew daemon units
  clew daemon reload
  clew daemon retry                    # bundles that are stuck, see status
  clew daemon report                   # the collector's page of hosts has it
  clew daemon install-core-pattern     # core dumps go to clewd, too
  clew daemon uninstall-core-pattern   # what was there before is put back
)";

int Install(const AskOptions& options) {
  const daemon::Paths paths(options.root);
  const auto before = daemon::InstallCorePattern(PosixFileSystem(), paths);
  if (!before) {
    return ReportError(before.error());
  }
  fmt::print("core dumps go to clewd and on to {:?}, as before\n", *before);
  return kExitOk;
}

int Uninstall(const AskOptions& options) {
  const daemon::Paths paths(options.root);
  const auto before = daemon::UninstallCorePattern(PosixFileSystem(), paths);
  if (!before) {
    return ReportError(before.error());
  }
  if (before->empty()) {
    fmt::print("kernel.core_pattern is not clew's; nothing to do\n");
  } else {
    fmt::print("kernel.core_pattern is {:?} again\n", *before);
  }
  return kExitOk;
}

Command* Add(Command& parent, const char* name, const char* about,
             AskOptions& options, std::function<int()> run, int& exit_code) {
  Command* command = parent.add_subcommand(name, about);
  command->add_option("--root", options.root,
                      "where clewd's files are, for tests");
  command->callback([run = std::move(run), &exit_code] { exit_code = run(); });
  return command;
}

}  // namespace

void AddDaemon(Command& app, int& exit_code) {
  auto options = std::make_shared<AskOptions>();
  Command* command =
      app.add_subcommand("daemon", "what clewd does, and how it is set up");
  command->footer(kDaemonFooter);
  command->require_subcommand(1);
  AskOptions& shared = *options;
  Add(
      *command, "status", "state, spool, counters, the last error", shared,
      [options] {
        return AskDaemon(*options, daemon::StatusRequest(), PrintDaemonStatus);
      },
      exit_code)
      ->add_flag("--json", shared.json, "report as JSON on stdout");
  Add(
      *command, "units", "units that are watched or recorded", shared,
      [options] {
        return AskDaemon(*options, daemon::UnitsRequest(), PrintDaemonUnits);
      },
      exit_code)
      ->add_flag("--json", shared.json, "report as JSON on stdout");
  Add(
      *command, "reload", "read the configuration again; rings are kept",
      shared,
      [options] {
        return AskDaemon(*options, daemon::ReloadRequest(),
                         [](const Json&) { fmt::print("reloaded\n"); });
      },
      exit_code);
  auto collector = std::make_shared<CollectorOptions>();
  AddCollectorOptions(
      *Add(
          *command, "report", "tell the collector now how this host does",
          shared,
          [options, collector] { return ReportHost(*options, *collector); },
          exit_code),
      *collector);
  auto bundle = std::make_shared<std::string>();
  Add(
      *command, "retry", "have bundles that are stuck prepared again", shared,
      [options, bundle] {
        return AskDaemon(*options, daemon::RetryRequest{*bundle},
                         PrintDaemonRetry);
      },
      exit_code)
      ->add_option("BUNDLE", *bundle,
                   "one of stuck/ or refused/; without it all of stuck/");
  Add(
      *command, "install-core-pattern", "have the kernel call clew's handler",
      shared, [options] { return Install(*options); }, exit_code);
  Add(
      *command, "uninstall-core-pattern", "put back what was there before",
      shared, [options] { return Uninstall(*options); }, exit_code);
}

}  // namespace clew::cli
