#ifndef CLEW_TESTS_TRANSFER_FLEET_H_
#define CLEW_TESTS_TRANSFER_FLEET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/transfer/collector_process.h"

namespace clew::transfer {

// Many hosts at one collector, some of them hostile.
struct FleetPlan {
  uint64_t hosts = 1000;  // each sends one bundle of its own
  uint64_t clients = 64;  // of them at once
  uint64_t hostile = 8;   // hosts beside these that trickle without end
  uint64_t streams = 4;   // of each of those: what a host may have
  // Streams of hosts that the collector has: 3/8 of its threads_max.
  uint64_t places = 48;
  uint64_t bundle_bytes = 200'000;
  // Of a client that is refused again and again.
  uint32_t attempts_max = 8;
  uint64_t pause_ms_max = 15'000;
};

struct FleetOutcome {
  std::vector<double> seconds;  // of each upload, ascending
  uint64_t gave_up = 0;
  std::string why;  // of the last that gave up
  uint64_t attempts = 0;
  uint64_t trickled = 0;  // streams that hostile hosts got
  double seconds_all = 0;

  // REQUIRES: seconds is not empty; 0 < part <= 1.
  double Quantile(double part) const;
};

// The configuration lines that the fleet wants; makes the tokens' files in
// `folder`.
std::vector<std::string> FleetConfig(const std::string& folder,
                                     const FleetPlan& plan);

// Hostile hosts begin first, and have had as many streams as they want, or as
// there are. REQUIRES: the collector was started with FleetConfig of that
// folder and plan.
FleetOutcome RunFleet(const CollectorProcess& collector,
                      const std::string& folder, const FleetPlan& plan);

}  // namespace clew::transfer

#endif  // CLEW_TESTS_TRANSFER_FLEET_H_
