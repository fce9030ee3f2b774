// Goal: a thread that had registered rseq(2) when the recording began finds the
// number of its core where the kernel writes it, from its first instruction on
// and on every core that it comes to. Method: property; guest recordings on
// four cores run along their true schedule. Oracle: the slices of the trace.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "follower/recording.h"
#include "tests/support/guest_programs.h"
#include "tests/support/guest_recorder.h"

namespace clew::follower {
namespace {

using clew::test::GuestRecorderOptions;
using clew::test::GuestRecording;

constexpr uint64_t kRseqAddr = 0x7000'0000;

// A guest's first thread has its struct rseq at kRseqAddr.
class RseqTest : public testing::Test {
 protected:
  void Open(const GuestRecording& guest,
            std::vector<StartSegment> more_segments) {
    Recording recording = guest.recording();
    std::ranges::move(more_segments,
                      std::back_inserter(recording.start.segments));
    recording.start.first.rseq_addr = kRseqAddr;
    auto session = OpenedRecording::Open(recording);
    ASSERT_TRUE(session) << session.error().message;
    session_ = std::move(*session);
    process_.emplace(session_->start());
    first_ = IndexOf(recording.start.first.thread);
  }
  size_t IndexOf(Tid thread) const {
    return process_->tape().IndexOf(thread).value();
  }

  std::unique_ptr<OpenedRecording> session_;
  std::optional<Process> process_;
  size_t first_ = 0;
};

TEST_F(RseqTest, AThreadFindsTheNumberOfItsCore) {
  std::set<uint32_t> cores;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    GuestRecorderOptions options;
    options.seed = seed;
    const GuestRecording guest =
        GuestRecording::Make(test::GuestMutexCounter, 8, options);
    ASSERT_NO_FATAL_FAILURE(Open(guest, {{.addr = TraceeAddr(kRseqAddr),
                                          .size_bytes = 4096,
                                          .prot = kProtRead | kProtWrite,
                                          .name = {},
                                          .bytes = {}}}));
    for (const ScheduleStep& step : guest.truth().schedule) {
      const size_t thread = IndexOf(step.thread);
      const auto advance = process_->Run(thread, step.until_insn);
      ASSERT_TRUE(advance) << advance.error().message;
      if (thread != first_) {
        continue;
      }
      std::array<uint32_t, 2> words = {};  // cpu_id_start, cpu_id
      ASSERT_TRUE(process_->memory().Peek(
          kRseqAddr, std::as_writable_bytes(std::span(words))));
      const uint32_t core = process_->tape()
                                .slices()[process_->thread(first_).slice]
                                .core.as_int();
      EXPECT_EQ(words[0], core);
      EXPECT_EQ(words[1], core);
      cores.insert(core);
    }
  }
  EXPECT_GE(cores.size(), 3u);
}

TEST_F(RseqTest, WordsThatAreNotMappedAreAnError) {
  const GuestRecording guest =
      GuestRecording::Make(test::GuestMutexCounter, 2, {});
  ASSERT_NO_FATAL_FAILURE(Open(guest, {}));
  const auto advance = process_->Run(first_, 1);
  ASSERT_FALSE(advance);
  EXPECT_EQ(advance.error().code, ErrorCode::kCorruptInput);
}

}  // namespace
}  // namespace clew::follower
