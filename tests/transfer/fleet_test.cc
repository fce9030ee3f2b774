// Goal: hostile hosts that hold all transfers they may and trickle keep no
// honest host from sending: they make way, and none of the others gives up.
// Method: a small form of bench/fleet.cc. Transfers that stand still or trickle
// are not ended by themselves for an hour, so whoever is served was made way
// for; an honest host gives up after a minute of refusals. Times are printed.
#include "tests/transfer/fleet.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/collector/samples.h"

namespace clew::transfer {
namespace {

void ExpectServed(FleetPlan plan, const std::vector<std::string>& more = {}) {
  plan.pause_ms_max = 200;
  plan.attempts_max = 600;
  const collector::TempFolder folder;
  std::vector<std::string> lines = FleetConfig(folder.path(), plan);
  lines.emplace_back("idle_time_max = 1h");
  lines.insert(lines.end(), more.begin(), more.end());
  CollectorProcess collector(folder.path(), lines);
  ASSERT_TRUE(collector.Start());
  const FleetOutcome outcome = RunFleet(collector, folder.path(), plan);
  std::printf("p50 %.3f s, p99 %.3f s, %lu attempts, %lu streams trickled\n",
              outcome.Quantile(0.5), outcome.Quantile(0.99),
              static_cast<unsigned long>(outcome.attempts),
              static_cast<unsigned long>(outcome.trickled));
  EXPECT_EQ(outcome.gave_up, 0u) << outcome.why;
  EXPECT_EQ(outcome.seconds.size(), plan.hosts);
  EXPECT_GE(outcome.trickled, plan.hostile) << "nobody was hostile";
  EXPECT_EQ(collector.Stop(), 0);
}

TEST(FleetTest, HonestHostsAreServedBesideHostileOnes) {
  ExpectServed({.hosts = 100, .clients = 16, .hostile = 8});
}

// 12 transfers of hosts, and 24 that trickling ones want.
TEST(FleetTest, HostileHostsWithMoreStreamsThanThereAreMakeWay) {
  ExpectServed({.hosts = 100, .clients = 4, .hostile = 6, .places = 12},
               {"threads_max = 32"});
}

}  // namespace
}  // namespace clew::transfer
