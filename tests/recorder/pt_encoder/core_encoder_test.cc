// Goal: libipt decodes from what CoreEncoder writes exactly the instructions
// that were executed, with times inside the bounds that the packets allow.
// Method: property test over random programs, executions and configurations.
// Oracle: libipt's instruction and block decoders.

#include "recorder/pt_encoder/core_encoder.h"

#include <gtest/gtest.h>

#include "tests/recorder/pt_encoder/ipt_decode.h"
#include "tests/recorder/pt_encoder/random_program.h"

namespace clew::recorder {
namespace {

constexpr int kRuns = 40;
constexpr int kInsns = 6000;

EncoderConfig RandomConfig(Random& random) {
  EncoderConfig config;
  config.return_compression = random.Below(4) != 0;
  config.long_tnt = random.Below(2) != 0;
  config.psb_period_bytes = 128u << random.Below(6);
  config.tsc = random.Below(5) != 0;
  config.mtc = config.tsc && random.Below(4) != 0;
  config.cyc = config.tsc && random.Below(3) == 0;
  config.cyc_threshold = static_cast<uint32_t>(random.Below(13));
  config.mtc_period = static_cast<uint32_t>(random.Below(10));
  config.tsc_ctc_denominator = 1 + static_cast<uint32_t>(random.Below(3));
  config.core_bus_ratio =
      config.tsc_bus_ratio * (1 + static_cast<uint32_t>(random.Below(5)));
  config.tsc_ctc_numerator =
      config.tsc_ctc_denominator * 20 + static_cast<uint32_t>(random.Below(99));
  return config;
}

uint64_t MtcPeriodTicks(const EncoderConfig& config) {
  return ((uint64_t{config.tsc_ctc_numerator} << config.mtc_period) /
          config.tsc_ctc_denominator) +
         1;
}

// A recorded run.
struct Recorded {
  EncoderConfig config;
  CodeImage image;
  Execution execution;
  std::vector<uint8_t> pt;
};

Recorded RecordWith(uint64_t seed, const EncoderConfig& config,
                    const ExecutionMix& mix) {
  Random random(seed);
  const RandomProgram program(random, 40);
  VectorSink sink;
  CoreEncoder encoder(config, sink);
  Execution execution = Execute(program, random, kInsns, mix, encoder);
  EXPECT_EQ(encoder.bytes_written(), sink.bytes().size());
  return {config, program.image(), std::move(execution), sink.bytes()};
}

Recorded RecordAny(uint64_t seed, const ExecutionMix& mix) {
  Random random(seed ^ 0x5eed);
  return RecordWith(seed, RandomConfig(random), mix);
}

// Compares decoded[0..] with executed[from..].
void ExpectSameIps(const std::vector<uint64_t>& decoded,
                   const std::vector<Execution::Step>& executed, size_t from) {
  ASSERT_EQ(decoded.size(), executed.size() - from);
  for (size_t i = 0; i < decoded.size(); ++i) {
    if (decoded[i] != kNotTold) {
      ASSERT_EQ(decoded[i], executed[from + i].ip) << "instruction " << i;
    }
  }
}

TEST(CoreEncoderTest, InsnDecoderGivesBackEveryInstruction) {
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(seed);
    const Recorded run = RecordAny(seed, {});
    const IptRun decoded = DecodeInsns(run.pt, run.config, run.image);
    EXPECT_EQ(decoded.errors, std::vector<std::string>());
    ExpectSameIps(decoded.ips, run.execution.steps, 0);
  }
}

TEST(CoreEncoderTest, BlockDecoderGivesBackEveryBlock) {
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(seed);
    const Recorded run = RecordAny(seed, {});
    const IptRun decoded = DecodeBlocks(run.pt, run.config, run.image);
    EXPECT_EQ(decoded.errors, std::vector<std::string>());
    ExpectSameIps(decoded.ips, run.execution.steps, 0);
  }
}

TEST(CoreEncoderTest, EveryPsbIsAPointToStartFrom) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const Recorded run = RecordAny(seed, {});
    const std::vector<size_t> psbs = FindPsbs(run.pt);
    ASSERT_GT(psbs.size(), 1u);
    EXPECT_EQ(psbs[0], 0u);
    size_t last_size = run.execution.steps.size() + 1;
    for (const size_t psb : psbs) {
      const IptRun decoded = DecodeInsns(run.pt, run.config, run.image, psb);
      EXPECT_EQ(decoded.errors, std::vector<std::string>());
      ASSERT_LT(decoded.ips.size(), last_size) << "PSB at " << psb;
      last_size = decoded.ips.size();
      ExpectSameIps(decoded.ips, run.execution.steps,
                    run.execution.steps.size() - last_size);
    }
  }
}

TEST(CoreEncoderTest, PsbsComeAtTheirPeriod) {
  EncoderConfig config;
  config.psb_period_bytes = 512;
  const Recorded run = RecordWith(7, config, {});
  const std::vector<size_t> psbs = FindPsbs(run.pt);
  ASSERT_GT(psbs.size(), 4u);
  for (size_t i = 1; i < psbs.size(); ++i) {
    EXPECT_GE(psbs[i] - psbs[i - 1], 512u);
    EXPECT_LE(psbs[i] - psbs[i - 1], 512u + 128u + 64u);
  }
}

// Even where a TNT packet is never full, because an MTC flushes it before.
TEST(CoreEncoderTest, PsbsComeInALoopOfConditionalBranches) {
  EncoderConfig config;
  config.psb_period_bytes = 256;
  config.mtc_period = 0;
  VectorSink sink;
  CoreEncoder encoder(config, sink);
  encoder.AdvanceTime(TscTicks(1));
  encoder.Enable(TraceeAddr(0x1000), EnableCause::kSwitchIn);
  for (uint64_t i = 0; i < 10000; ++i) {
    encoder.AdvanceTime(TscTicks(2 + 2 * i));
    encoder.Conditional(true, TraceeAddr(0x1000));
  }
  encoder.Interrupt(TraceeAddr(0x1000));
  encoder.Flush();
  const CodeImage image = {{0x1000, {0x75, 0xfe}}};  // jne 0x1000
  EXPECT_GT(FindPsbs(sink.bytes()).size(), sink.bytes().size() / 400);
  EXPECT_EQ(DecodeInsns(sink.bytes(), config, image).ips,
            std::vector<uint64_t>(10000, 0x1000));
}

// Times of the branches, and for each step how many came up to it: libipt reads
// on to the next branch's packet before it tells the time of a step.
struct BranchTimes {
  explicit BranchTimes(const std::vector<Execution::Step>& steps) {
    for (const Execution::Step& step : steps) {
      if (step.branch) {
        times.push_back(step.time);
      }
      until.push_back(times.size());
    }
    end_time = steps.back().time;
  }
  // Of the n-th branch behind step i.
  uint64_t Next(size_t i, size_t n) const {
    const size_t branch = until[i] + n;
    return branch < times.size() ? times[branch] : end_time;
  }
  std::vector<uint64_t> times;
  std::vector<size_t> until;
  uint64_t end_time = 0;
};

// An instruction's time is not after the next branch (a CYC packet tells the
// time of the last branch in its TNT packet), and not older than one MTC period
// before the last event that was encoded.
void ExpectTimesWithinGranularity(const Recorded& run) {
  const IptRun decoded = DecodeInsns(run.pt, run.config, run.image);
  const std::vector<Execution::Step>& steps = run.execution.steps;
  ASSERT_EQ(decoded.times.size(), steps.size());
  const BranchTimes branches(steps);
  const size_t in_a_tnt = run.config.long_tnt ? 47 : 6;
  uint64_t last = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const uint64_t time = decoded.times[i];
    ASSERT_LE(time, branches.Next(i, run.config.cyc ? in_a_tnt - 1 : 0))
        << "instruction " << i;
    ASSERT_GT(time + MtcPeriodTicks(run.config), steps[i].event_time)
        << "instruction " << i;
    ASSERT_GE(time, last) << "instruction " << i;
    last = time;
  }
}

TEST(CoreEncoderTest, TimesLieWithinTheGranularity) {
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    Random random(seed ^ 0x71e);
    EncoderConfig config = RandomConfig(random);
    config.tsc = config.mtc = true;
    config.tsc_ctc_denominator = 1;  // libipt rounds at each MTC otherwise
    config.cyc = seed % 2 == 0;
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", ticks per crystal tick "
                 << config.tsc_ctc_numerator << "/"
                 << config.tsc_ctc_denominator << ", mtc_period "
                 << config.mtc_period << ", cyc " << config.cyc
                 << ", threshold " << config.cyc_threshold);
    ExpectTimesWithinGranularity(RecordWith(seed, config, {}));
  }
}

// With CYC packets before everything that may have one, libipt knows the time
// of the last event exactly.
TEST(CoreEncoderTest, CycMakesTimesExact) {
  EncoderConfig config;
  config.cyc = true;
  config.long_tnt = false;
  const Recorded run = RecordWith(3, config, {});
  const IptRun decoded = DecodeInsns(run.pt, run.config, run.image);
  ASSERT_EQ(decoded.times.size(), run.execution.steps.size());
  size_t exact = 0;
  for (size_t i = 0; i < decoded.times.size(); ++i) {
    exact += decoded.times[i] == run.execution.steps[i].event_time ? 1 : 0;
  }
  EXPECT_GT(exact, decoded.times.size() / 3);
}

// Between two overflows, what libipt decodes is a beginning of what was
// executed, and reaches at least behind the last packet before the overflow.
TEST(CoreEncoderTest, DecodingResumesBehindEveryOverflow) {
  size_t seen = 0;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(seed);
    ExecutionMix mix;
    mix.overflow_per_1000 = 5;
    const Recorded run = RecordAny(seed, mix);
    const IptRun decoded = DecodeInsns(run.pt, run.config, run.image);
    EXPECT_EQ(decoded.errors, std::vector<std::string>());
    const std::vector<size_t>& cuts = run.execution.overflows;
    ASSERT_EQ(decoded.overflows.size(), cuts.size());
    seen += cuts.size();
    size_t begin = 0;
    size_t decoded_begin = 0;
    for (size_t k = 0; k <= cuts.size(); ++k) {
      const size_t end = k < cuts.size() ? cuts[k] : run.execution.steps.size();
      const size_t decoded_end =
          k < cuts.size() ? decoded.overflows[k] : decoded.ips.size();
      ASSERT_LE(decoded_end - decoded_begin, end - begin) << "part " << k;
      for (size_t i = 0; i < decoded_end - decoded_begin; ++i) {
        ASSERT_EQ(decoded.ips[decoded_begin + i],
                  run.execution.steps[begin + i].ip)
            << "part " << k << ", instruction " << i;
      }
      begin = end;
      decoded_begin = decoded_end;
    }
    // All but what hung on branches that were pending.
    EXPECT_GT(decoded.ips.size() * 10, run.execution.steps.size() * 5);
  }
  EXPECT_GT(seen, 100u);
}

TEST(CoreEncoderTest, ReturnsThatMatchCostOneBit) {
  const auto bytes_of = [](bool compressed) {
    EncoderConfig config;
    config.return_compression = compressed;
    config.mtc = false;
    VectorSink sink;
    CoreEncoder encoder(config, sink);
    encoder.AdvanceTime(TscTicks(1));
    encoder.Enable(TraceeAddr(0x401000), EnableCause::kSwitchIn);
    const uint64_t before = encoder.bytes_written();
    for (int i = 0; i < 47; ++i) {
      encoder.DirectCall(TraceeAddr(0x401005), TraceeAddr(0x402000));
      encoder.Return(TraceeAddr(0x401005));
    }
    return encoder.bytes_written() - before;
  };
  EXPECT_EQ(bytes_of(true), 8u);         // one TNT
  EXPECT_EQ(bytes_of(false), 47u * 3u);  // TIPs of two bytes of address
}

// What a sequence of returns adds to a stream without timing: a TIP of two
// bytes of address costs three bytes, a pending bit none.
class ReturnStackTest : public testing::Test {
 protected:
  ReturnStackTest() : encoder_(Config(), sink_) {
    encoder_.Enable(TraceeAddr(0x401000), EnableCause::kSwitchIn);
  }
  static EncoderConfig Config() {
    EncoderConfig config;
    config.mtc = false;
    return config;
  }
  void Call(uint64_t return_ip) {
    encoder_.DirectCall(TraceeAddr(return_ip), TraceeAddr(0x402000));
  }
  // True if it was written as a TIP.
  bool ReturnsByTip(uint64_t target) {
    encoder_.Flush();
    const uint64_t before = encoder_.bytes_written();
    encoder_.Return(TraceeAddr(target));
    return encoder_.bytes_written() != before;
  }
  VectorSink sink_;
  CoreEncoder encoder_;
};

TEST_F(ReturnStackTest, HasTheDepthThatDecodersHave) {
  for (int i = 0; i < 100; ++i) {
    Call(0x401005);
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ReturnsByTip(0x401005), i >= 64) << i;
  }
}

// perf pops its stack at each RET, libipt only at one that was compressed:
// after a RET that does not match, nothing that is on it can be used.
TEST_F(ReturnStackTest, IsForgottenAtAReturnThatDoesNotMatch) {
  Call(0x401005);
  Call(0x401105);
  EXPECT_TRUE(ReturnsByTip(0x401205));
  EXPECT_TRUE(ReturnsByTip(0x401105));
  EXPECT_TRUE(ReturnsByTip(0x401005));
  Call(0x401305);
  EXPECT_FALSE(ReturnsByTip(0x401305));
}

TEST_F(ReturnStackTest, DoesNotKeepACallOfTheNextInstruction) {
  Call(0x401005);
  Call(0x402000);
  EXPECT_FALSE(ReturnsByTip(0x401005));
}

TEST(CoreEncoderTest, PausesAreToldByMtcsOrByTsc) {
  EncoderConfig config;
  VectorSink sink;
  CoreEncoder encoder(config, sink);
  const uint64_t period = uint64_t{40} << config.mtc_period;
  encoder.AdvanceTime(TscTicks(period));
  encoder.Enable(TraceeAddr(0x401000), EnableCause::kSwitchIn);
  uint64_t before = encoder.bytes_written();
  encoder.AdvanceTime(TscTicks(period * 2 - 1));
  EXPECT_EQ(encoder.bytes_written() - before, 0u);
  encoder.AdvanceTime(TscTicks(period * 2));
  EXPECT_EQ(encoder.bytes_written() - before, 2u);  // an MTC
  before = encoder.bytes_written();
  encoder.AdvanceTime(TscTicks(period * (2 + kMtcBurstMax)));
  EXPECT_EQ(encoder.bytes_written() - before, 2u * kMtcBurstMax);
  before = encoder.bytes_written();
  encoder.AdvanceTime(TscTicks(period * (3 + 2 * kMtcBurstMax)));
  EXPECT_EQ(encoder.bytes_written() - before, 15u);  // TSC and TMA
}

// A sink that always offers the least.
class TightSink final : public PtSink {
 public:
  std::span<uint8_t> Exchange(size_t used_bytes) override {
    bytes.insert(bytes.end(), room_.begin(),
                 room_.begin() + static_cast<ptrdiff_t>(used_bytes));
    room_.assign(kSinkRoomMinBytes, 0xee);
    return room_;
  }
  std::vector<uint8_t> bytes;

 private:
  std::vector<uint8_t> room_;
};

TEST(CoreEncoderTest, BytesDoNotDependOnTheSinksRoom) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const Recorded wide = RecordAny(seed, {});
    Random config_random(seed ^ 0x5eed);
    const EncoderConfig config = RandomConfig(config_random);
    Random random(seed);
    const RandomProgram program(random, 40);
    TightSink sink;
    CoreEncoder encoder(config, sink);
    Execute(program, random, kInsns, {}, encoder);
    EXPECT_EQ(sink.bytes, wide.pt);
  }
}

TEST(CoreEncoderTest, BranchesNotTakenAtOnceAreAsOneByOne) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    EncoderConfig config;
    config.long_tnt = random.Below(2) != 0;
    config.mtc = false;
    config.time_at_sync = true;
    config.psb_period_bytes = 128;
    VectorSink singly_sink;
    VectorSink at_once_sink;
    CoreEncoder singly(config, singly_sink);
    CoreEncoder at_once(config, at_once_sink);
    for (CoreEncoder* encoder : {&singly, &at_once}) {
      encoder->AdvanceTime(TscTicks(1));
      encoder->Enable(TraceeAddr(0x401000), EnableCause::kSwitchIn);
    }
    for (int event = 0; event < 50; ++event) {
      const auto count = static_cast<uint32_t>(random.Below(200));
      for (uint32_t i = 0; i < count; ++i) {
        singly.Conditional(false, TraceeAddr(0x401000));
      }
      at_once.NotTaken(count);
      const auto kind = random.Below(3);
      for (CoreEncoder* encoder : {&singly, &at_once}) {
        if (kind == 0) {
          encoder->Conditional(true, TraceeAddr(0x401000));
        } else if (kind == 1) {
          encoder->IndirectJump(TraceeAddr(0x401000));
        } else {
          encoder->AdvanceTime(TscTicks(2 + static_cast<uint64_t>(event)));
          encoder->Sync(TraceeAddr(0x401000));
        }
      }
    }
    singly.Flush();
    at_once.Flush();
    EXPECT_EQ(at_once_sink.bytes(), singly_sink.bytes());
  }
}

TEST(CoreEncoderDeathTest, RefusesEventsInTheWrongState) {
  VectorSink sink;
  CoreEncoder encoder({}, sink);
  EXPECT_EXIT(encoder.Conditional(true, TraceeAddr(1)),
              testing::ExitedWithCode(kExitBug), "enabled encoder");
  EXPECT_EXIT(encoder.NotTaken(1), testing::ExitedWithCode(kExitBug),
              "enabled encoder");
  EXPECT_EXIT(encoder.IndirectJump(TraceeAddr(1)),
              testing::ExitedWithCode(kExitBug), "enabled encoder");
  encoder.Enable(TraceeAddr(0x1000), EnableCause::kSwitchIn);
  EXPECT_EXIT(encoder.Enable(TraceeAddr(1), EnableCause::kSwitchIn),
              testing::ExitedWithCode(kExitBug), "disabled encoder");
}

}  // namespace
}  // namespace clew::recorder
