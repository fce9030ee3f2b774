// clew-collector: the server, and work on its store.

#include <signal.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "collector/clocks.h"
#include "collector/collector.h"
#include "collector/config.h"
#include "collector/log.h"
#include "collector/service/auth.h"
#include "collector/start_notifier.h"
#include "common/result.h"

namespace clew::collector {
namespace {

constexpr const char* kFooter = R"(
Signals:
  SIGTERM  ends transfers, saves, exits
  SIGHUP   reads tokens, client_ca, denied and webhook_secret again

Examples:
  clew-collector                         as the unit runs it
  clew-collector token web1 >>/etc/clew/collector.d/tokens
  clew-collector check
  clew-collector test-webhook
  clew-collector --config ./collector.conf
)";

constexpr time_t kTick_s = 5;

int Report(const Status& status) {
  if (status) {
    return kExitOk;
  }
  fmt::print(stderr, "clew-collector: {}\n", status.error().message);
  return ExitCodeOf(status.error().code);
}

// Blocked in every thread; Serve waits for them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&signals, each);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// systemd gives the start so much longer.
void ExtendStart() { sd_notify(0, "EXTEND_TIMEOUT_USEC=60000000"); }

void Reload(Collector& collector, Log& log) {
  sd_notify(0, "RELOADING=1");
  if (const Status read = collector.Reload(); !read) {
    log.Write(Log::Priority::kError, "reload_failed",
              {{"message", read.error().message}});
  } else {
    log.Write(Log::Priority::kInfo, "reloaded");
  }
  sd_notify(0, "READY=1");
}

// Until SIGTERM or SIGINT.
void Serve(Collector& collector, Log& log, const sigset_t& signals) {
  uint64_t watchdog_us = 0;
  const bool watched = sd_watchdog_enabled(0, &watchdog_us) > 0;
  timespec tick{.tv_sec = kTick_s, .tv_nsec = 0};
  if (watched && watchdog_us / 2 < uint64_t{kTick_s} * 1'000'000) {
    tick = {.tv_sec = static_cast<time_t>(watchdog_us / 2 / 1'000'000),
            .tv_nsec = static_cast<long>(watchdog_us / 2 % 1'000'000) * 1000};
  }
  while (true) {
    const int signal = sigtimedwait(&signals, nullptr, &tick);
    if (signal == SIGHUP) {
      Reload(collector, log);
    } else if (signal > 0) {
      return;
    }
    collector.CheckAlive();
    if (watched) {
      sd_notify(0, "WATCHDOG=1");
    }
  }
}

Status Run(const std::string& config_file) {
  const sigset_t signals = BlockSignals();
  signal(SIGPIPE, SIG_IGN);
  CLEW_ASSIGN_OR_RETURN(config, ReadCollectorConfig(config_file));
  Log log(stderr, std::getenv("JOURNAL_STREAM") != nullptr, Steady_s);
  CLEW_ASSIGN_OR_RETURN(collector, Collector::Start(config, log, ExtendStart));
  log.Write(Log::Priority::kInfo, "ready",
            {{"version", CLEW_VERSION},
             {"port", fmt::to_string(collector->port())},
             {"web_port", fmt::to_string(collector->web_port())}});
  sd_notify(0, "READY=1");
  Serve(*collector, log, signals);
  sd_notify(0, "STOPPING=1");
  collector->Stop();
  log.Write(Log::Priority::kInfo, "stopped");
  return {};
}

Status PrintToken(const std::string& host) {
  CLEW_ASSIGN_OR_RETURN(made, MakeToken(host));
  fmt::print("{}\n", made.line);
  std::fflush(stdout);
  fmt::print(stderr,
             "clew-collector: the line above is for the collector's tokens "
             "file; the token, for the token_file of {}, is\n{}\n",
             host, made.token);
  return {};
}

Status TestWebhook(const CollectorConfig& config) {
  CLEW_RETURN_IF_ERROR(SendTestNotification(config));
  fmt::print("the webhook accepted a test notification\n");
  return {};
}

// What the command line asks for.
struct Request {
  std::string config = kCollectorConfig;
  std::string host;
  std::string id;
};

int Main(int argc, char** argv) {
  Request request;
  CLI::App app("takes in, keeps and solves the bundles of many hosts",
               "clew-collector");
  app.require_subcommand(0, 1);
  app.footer(std::string(kConfigHelp) + kFooter);
  app.set_version_flag("--version", "clew-collector " CLEW_VERSION);
  app.add_option("--config", request.config, "configuration file")
      ->capture_default_str();
  auto* token = app.add_subcommand("token", "make a host's token and its line");
  token->add_option("host", request.host, "name of the host")->required();
  auto* check = app.add_subcommand(
      "check", "read every byte of the store; the collector must not run");
  auto* remove = app.add_subcommand(
      "remove", "remove a bundle; the collector must not run");
  remove->add_option("id", request.id, "64 digits")->required();
  auto* test = app.add_subcommand(
      "test-webhook", "send a test notification; the collector may run");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "clew-collector: {}; see --help\n", error.what());
    return kExitUsage;
  }
  if (token->parsed()) {
    return Report(PrintToken(request.host));
  }
  if (!check->parsed() && !remove->parsed() && !test->parsed()) {
    return Report(Run(request.config));
  }
  const auto config = ReadCollectorConfig(request.config);
  if (!config) {
    return Report(std::unexpected(config.error()));
  }
  if (test->parsed()) {
    return Report(TestWebhook(*config));
  }
  return Report(check->parsed() ? CheckStore(*config)
                                : RemoveBundle(*config, request.id));
}

}  // namespace
}  // namespace clew::collector

int main(int argc, char** argv) {
  try {
    return clew::collector::Main(argc, argv);
  } catch (const std::exception& error) {
    // Our own code does not throw: memory ran out, or a library threw.
    std::fprintf(stderr, "clew-collector: bug: %s\n", error.what());
    return clew::kExitBug;
  }
}
