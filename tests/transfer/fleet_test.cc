// Goal: hostile hosts that hold all transfers they may and trickle keep no
// honest host from sending: none gives up, and none waits long.
// Method: a small form of bench/fleet.cc. The time allows for a busy machine.
#include "tests/transfer/fleet.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/collector/samples.h"

namespace clew::transfer {
namespace {

constexpr double kUploadTimeMax_s = 5;

void ExpectServed(const FleetPlan& plan,
                  const std::vector<std::string>& more = {}) {
  const collector::TempFolder folder;
  std::vector<std::string> lines = FleetConfig(folder.path(), plan);
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
  EXPECT_LT(outcome.Quantile(0.99), kUploadTimeMax_s);
  EXPECT_GE(outcome.trickled, plan.hostile) << "nobody was hostile";
  EXPECT_EQ(collector.Stop(), 0);
}

TEST(FleetTest, HonestHostsAreServedBesideHostileOnes) {
  ExpectServed({.hosts = 100, .clients = 16, .hostile = 8});
}

// 12 transfers of hosts, and 24 that trickling ones want.
TEST(FleetTest, HostileHostsWithMoreStreamsThanThereAreMakeWay) {
  ExpectServed({.hosts = 100, .clients = 4, .hostile = 6},
               {"threads_max = 32"});
}

}  // namespace
}  // namespace clew::transfer
