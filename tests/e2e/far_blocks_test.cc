// Goal: to solve and to check a recording, little of a trace waits for a thread
// that sleeps meanwhile.
// Method: a program with such a thread, and room for far fewer blocks than the
// others run; the oracle is that limit.
#include <gtest/gtest.h>

#include <tuple>

#include "constraints/verdict.h"
#include "decoder/streams.h"
#include "follower/bundle/bundle_recording.h"
#include "solver/solve.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

constexpr uint64_t kWaitingMax = 20'000;

class FarBlocksTest
    : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

INSTANTIATE_TEST_SUITE_P(CoresAndSeeds, FarBlocksTest,
                         testing::Combine(testing::Values("1", "4"),
                                          testing::Values("1", "2", "3")));

TEST_P(FarBlocksTest, TheyAreNotDecodedBeforeTheirTime) {
  const auto& [cores, seed] = GetParam();
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  const ProgramOutput recorded =
      Clew({"record", "--cores", cores, "--seed", seed, "-o", bundle, "--",
            Tracee("sleeper")});
  ASSERT_EQ(recorded.exit_status, kExitOk) << recorded.text;

  const auto opened = follower::OpenRecording(bundle);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;

  follower::Recording recording = (*opened)->recording;
  recording.open_streams = [&]() -> Result<std::unique_ptr<StreamSource>> {
    CLEW_ASSIGN_OR_RETURN(
        streams, decoder::TraceStreams::Create(
                     *(*opened)->trace, {.buffered_items_max = kWaitingMax}));
    return std::move(streams);
  };
  const auto report = solver::Solve(recording, {}, nullptr);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->verdict, constraints::Verdict::kWitness) << report->reason;
}

}  // namespace
}  // namespace clew::e2e
