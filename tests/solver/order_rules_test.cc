// Goal: what other processes did on a core orders nothing of the recorded one:
// the true schedule of a trace of a whole host is permitted.
// Method: guest recordings; slices of a thread without a stream are put before
// every slice of every core. Oracle: the schedule that really happened.
#include "follower/order_rules.h"

#include <gtest/gtest.h>

#include "solver/check.h"
#include "tests/support/guest_programs.h"
#include "tests/support/guest_recorder.h"

namespace clew::solver {
namespace {

using clew::test::GuestRecording;

constexpr Tid kForeign(99'999);

// Ids stay indices, and in order of time on each core.
void AddForeignSlices(GuestRecording& guest) {
  std::vector<Slice> slices;
  for (const Slice& own : guest.slices()) {
    for (const Tid thread : {kForeign, own.thread}) {
      slices.push_back(own);
      slices.back().thread = thread;
      slices.back().id = static_cast<uint32_t>(slices.size() - 1);
    }
  }
  guest.slices() = std::move(slices);
  for (auto& [tid, blocks] : guest.blocks()) {
    for (StreamBlock& block : blocks) {
      block.slice = 2 * block.slice + 1;
    }
  }
}

TEST(OrderRulesTest, SlicesOfOtherProcessesOrderNothing) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    auto guest = GuestRecording::Make(
        test::GuestMutexCounter, 6,
        {.seed = seed, .cores = 2, .time_slice_ticks = 300});
    ASSERT_GT(guest.slices().size(), 4u);
    AddForeignSlices(guest);
    const auto report =
        CheckSchedule(guest.recording(), guest.truth().schedule, nullptr);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->disagreement.value_or(""), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace clew::solver
