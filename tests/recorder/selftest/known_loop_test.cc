// Goal: the self-test's decode step passes if and only if the trace has what
// was executed. Method: a kernel of the test's own, whose PT of the known loop
// is made by our encoder, once as it was executed and once with a round too
// few.
#include "recorder/selftest/known_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "recorder/pt_encoder/core_encoder.h"
#include "tests/recorder/perf/pt_kernel.h"

extern "C" const char clew_selftest_loop[];

namespace clew::recorder {
namespace {

constexpr uint64_t kRounds = 10'000;  // of the self-test
constexpr uint64_t kDecBytes = 3;     // of "dec %rax"
constexpr uint64_t kLoopBytes = 5;    // and "jnz" back to it

// The PT of a thread that begins at the loop, and is interrupted behind it.
std::vector<uint8_t> PtOfLoop(uint64_t rounds) {
  const auto loop = reinterpret_cast<uint64_t>(clew_selftest_loop);
  VectorSink sink;
  EncoderConfig config;
  config.mtc_period = 3;  // the recorder's default
  CoreEncoder encoder(config, sink);
  uint64_t now = 1000;
  encoder.AdvanceTime(TscTicks(now));
  encoder.Enable(TraceeAddr(loop), EnableCause::kSwitchIn);
  for (uint64_t round = 1; round <= rounds; ++round) {
    encoder.AdvanceTime(TscTicks(now += 2));
    const bool again = round < rounds;
    encoder.Conditional(again, TraceeAddr(again ? loop : loop + kLoopBytes));
  }
  encoder.Interrupt(TraceeAddr(loop + kLoopBytes));
  encoder.Flush();
  return sink.bytes();
}

// SWITCH: the calling thread comes in.
std::vector<std::byte> SwitchIn() {
  perf_event_header header = {};
  header.type = PERF_RECORD_SWITCH;
  header.size = sizeof(header) + 32;
  const auto thread = static_cast<uint64_t>(syscall(SYS_gettid));
  const std::array<uint64_t, 4> id = {
      static_cast<uint64_t>(getpid()) | thread << 32, 900, 0, 0};
  std::vector<std::byte> record(header.size);
  std::memcpy(record.data(), &header, sizeof(header));
  std::memcpy(record.data() + sizeof(header), id.data(), sizeof(id));
  return record;
}

// Has traced the loop by the time that it is told to stop.
class LoopKernel final : public perf::PtKernel {
 public:
  explicit LoopKernel(uint64_t rounds) : rounds_(rounds) {}
  Status Control(const Fd& event, unsigned long request, unsigned long argument,
                 std::string_view what) override {
    if (request == PERF_EVENT_IOC_DISABLE && rounds_ > 0) {
      WriteRecord(CoreId(0), SwitchIn());
      const auto pt = PtOfLoop(std::exchange(rounds_, 0));
      Trace(CoreId(0), std::as_bytes(std::span(pt)), 950);
    }
    return PtKernel::Control(event, request, argument, what);
  }

 private:
  uint64_t rounds_;
};

TEST(SelftestDecodeTest, PassesIfTheTraceHasWhatWasExecuted) {
  ASSERT_EQ(static_cast<uint8_t>(clew_selftest_loop[kDecBytes]), 0x75) << "jnz";
  const perf::PtSysfs sysfs(1);
  LoopKernel whole(kRounds);
  const auto passed = DecodeKnownLoop(whole, sysfs.root(), "/proc");
  ASSERT_TRUE(passed) << passed.error().message;
  EXPECT_THAT(*passed, testing::HasSubstr("10000"));
  LoopKernel short_of_one(kRounds - 1);
  const auto failed = DecodeKnownLoop(short_of_one, sysfs.root(), "/proc");
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, testing::HasSubstr("has 9999 of them"));
}

}  // namespace
}  // namespace clew::recorder
