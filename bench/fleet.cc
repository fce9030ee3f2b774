// Many hosts at the built clew-collector, each with one bundle, while hostile
// hosts hold as many transfers as they may and send a byte now and then.
//
//   bench_fleet [HOSTS] [CLIENTS] [HOSTILE]
//
// Everything is in a new folder in memory, removed at the end.

#include "tests/transfer/fleet.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>

#include "common/check.h"
#include "tests/collector/samples.h"

namespace clew::transfer {
namespace {

void Measure(const FleetPlan& plan) {
  const collector::TempFolder folder;
  CollectorProcess collector(folder.path(), FleetConfig(folder.path(), plan));
  CLEW_CHECK(collector.Start(), "no collector");
  const FleetOutcome outcome = RunFleet(collector, folder.path(), plan);
  fmt::print(
      "{:>6} {:>8} {:>8} {:>8} {:>8.3f} {:>8.3f} {:>8.3f} {:>9} {:>8} "
      "{:>8.1f}\n",
      plan.hosts, plan.clients, plan.hostile, outcome.trickled,
      outcome.Quantile(0.5), outcome.Quantile(0.99), outcome.Quantile(1),
      outcome.attempts, outcome.gave_up, outcome.seconds_all);
  if (outcome.gave_up > 0) {
    fmt::print("the last that gave up: {}\n", outcome.why);
  }
}

int Main(int argc, char** argv) {
  FleetPlan plan;
  CLI::App app("honest hosts beside hostile ones");
  app.add_option("hosts", plan.hosts, "honest, one bundle each")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("clients", plan.clients, "of them at once")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("hostile", plan.hostile, "beside them")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8} {:>8}\n",
             "hosts", "clients", "hostile", "streams", "p50 s", "p99 s",
             "max s", "attempts", "gave up", "all s");
  Measure(plan);
  return 0;
}

}  // namespace
}  // namespace clew::transfer

int main(int argc, char** argv) { return clew::transfer::Main(argc, argv); }
