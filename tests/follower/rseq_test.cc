// Goal: a thread that had registered rseq(2) when the recording began finds the
// number of its core where the kernel writes it, from its first instruction on
// and on every core that it comes to. Method: property; guest recordings on
// four cores run along their true schedule. Oracle: the slices of the trace.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "follower/recording.h"
#include "tests/support/guest_programs.h"
#include "tests/support/guest_recorder.h"

namespace clew::follower {
namespace {

using clew::test::GuestRecorderOptions;
using clew::test::GuestRecording;

constexpr uint64_t kRseqAddr = 0x7000'0000;

TEST(RseqTest, AThreadFindsTheNumberOfItsCore) {
  std::set<uint32_t> cores;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    GuestRecorderOptions options;
    options.seed = seed;
    const GuestRecording guest =
        GuestRecording::Make(test::GuestMutexCounter, 8, options);
    Recording recording = guest.recording();
    recording.start.segments.push_back({.addr = TraceeAddr(kRseqAddr),
                                        .size_bytes = 4096,
                                        .prot = kProtRead | kProtWrite,
                                        .name = {},
                                        .bytes = {}});
    recording.start.first.rseq_addr = kRseqAddr;
    const auto session = OpenedRecording::Open(recording);
    ASSERT_TRUE(session) << session.error().message;
    Process process = (*session)->start();
    const auto first =
        process.tape().IndexOf(recording.start.first.thread).value();
    for (const ScheduleStep& step : guest.truth().schedule) {
      const auto thread = process.tape().IndexOf(step.thread).value();
      const auto advance = process.Run(thread, step.until_insn);
      ASSERT_TRUE(advance) << advance.error().message;
      if (thread != first) {
        continue;
      }
      std::array<uint32_t, 2> words = {};  // cpu_id_start, cpu_id
      ASSERT_TRUE(process.memory().Peek(
          kRseqAddr, std::as_writable_bytes(std::span(words))));
      const uint32_t core =
          process.tape().slices()[process.thread(first).slice].core.as_int();
      EXPECT_EQ(words[0], core);
      EXPECT_EQ(words[1], core);
      cores.insert(core);
    }
  }
  EXPECT_GE(cores.size(), 3u);
}

TEST(RseqTest, WordsThatAreNotMappedAreAnError) {
  const GuestRecording guest =
      GuestRecording::Make(test::GuestMutexCounter, 2, {});
  Recording recording = guest.recording();
  recording.start.first.rseq_addr = kRseqAddr;
  const auto session = OpenedRecording::Open(recording);
  ASSERT_TRUE(session) << session.error().message;
  Process process = (*session)->start();
  const auto first =
      process.tape().IndexOf(recording.start.first.thread).value();
  const auto advance = process.Run(first, 1);
  ASSERT_FALSE(advance);
  EXPECT_EQ(advance.error().code, ErrorCode::kCorruptInput);
}

}  // namespace
}  // namespace clew::follower
