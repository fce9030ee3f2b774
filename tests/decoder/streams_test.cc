// Goal: per-thread streams hold exactly the instructions that each thread
// retired, in order, each within its time bounds, or a gap in their place.
// Method: property; random programs on several cores, traced by our encoder
// under random settings, whose true instructions and times are known. The seed
// is in every message.

#include "decoder/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bundle/perf_data/cpu_id.h"
#include "bundle/perf_data/perf_data_writer.h"
#include "common/digest.h"
#include "tests/decoder/perf_script.h"
#include "tests/decoder/synthetic.h"

namespace clew::decoder {
namespace {

using bundle::ParseCpuId;
using bundle::PerfData;
using bundle::PerfDataConfig;

// What a stream adds up to.
struct Checked {
  uint64_t insns = 0;
  uint64_t gaps = 0;
  double width = 0;  // sum of hi - lo, per instruction
};

// Walks a thread's stream beside the truth; without gaps, index by index.
Checked CheckThread(TraceStreams &streams, Tid tid,
                    const std::vector<TrueInsn> &truth) {
  Checked checked;
  size_t at = 0;
  bool after_gap = false;
  while (true) {
    auto item = streams.Next(tid);
    if (!item) {
      ADD_FAILURE() << item.error().message;
      return checked;
    }
    if (!*item) {
      break;
    }
    if (const auto *gap = std::get_if<Gap>(&**item)) {
      ++checked.gaps;
      after_gap = true;
      EXPECT_FALSE(gap->detail.empty());
      continue;
    }
    const auto &block = std::get<StreamBlock>(**item);
    const Slice &slice = streams.slices()[block.slice];
    std::vector<TraceeAddr> ips;
    const Status walked = streams.ForEachInstruction(
        block, [&ips](const WalkedInsn &insn) { ips.push_back(insn.ip); });
    EXPECT_TRUE(walked) << walked.error().message;
    if (after_gap) {
      // Go on where the truth has the block's first instruction in its time.
      while (at < truth.size() &&
             (truth[at].ip != block.ip || truth[at].time < block.time.lo)) {
        ++at;
      }
      after_gap = false;
    }
    for (const TraceeAddr ip : ips) {
      if (at == truth.size() || truth[at].ip != ip) {
        ADD_FAILURE() << fmt::format(
            "thread {}: instruction {} is at {:#x}, truth {:#x}", tid, at, ip,
            at == truth.size() ? TraceeAddr(0) : truth[at].ip);
        return checked;
      }
      EXPECT_LE(block.time.lo, truth[at].time)
          << fmt::format("thread {} instruction {}", tid, at);
      EXPECT_GE(block.time.hi, truth[at].time)
          << fmt::format("thread {} instruction {}", tid, at);
      EXPECT_EQ(slice.core, truth[at].core);
      checked.width +=
          static_cast<double>(block.time.hi.as_int() - block.time.lo.as_int());
      ++at;
      ++checked.insns;
      if (testing::Test::HasFailure()) {
        return checked;
      }
    }
    EXPECT_EQ(block.interrupted, truth[at - 1].interrupted)
        << fmt::format("thread {} instruction {}", tid, at - 1);
  }
  if (!after_gap) {
    EXPECT_EQ(at, truth.size()) << "thread " << tid.as_int() << " ends early";
  }
  return checked;
}

struct Decoded {
  std::unique_ptr<PerfTrace> trace;
  std::unique_ptr<TraceStreams> streams;
};

Decoded Decode(const Synthetic &synthetic, bool like_hardware = false) {
  Decoded decoded{.trace = LoadTrace(synthetic, like_hardware), .streams = {}};
  auto streams = TraceStreams::Create(*decoded.trace, {});
  EXPECT_TRUE(streams) << streams.error().message;
  decoded.streams = std::move(*streams);
  return decoded;
}

TEST(StreamsTest, EveryInstructionInOrderWithinItsBounds) {
  const auto first =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  for (uint64_t seed = first; seed < first + 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const auto synthetic = MakeSynthetic(RandomSyntheticConfig(seed, random));
    // What holds of hardware, holds of our encoder, too.
    Decoded decoded = Decode(*synthetic, random.Below(2) == 0);
    uint64_t insns = 0;
    for (const auto &[tid, truth] : synthetic->truth) {
      const Checked checked = CheckThread(*decoded.streams, tid, truth);
      EXPECT_EQ(checked.gaps, 0u);
      insns += checked.insns;
      if (HasFailure()) {
        return;
      }
    }
    const StreamStats stats = decoded.streams->stats();
    EXPECT_EQ(stats.instructions, insns);
    EXPECT_EQ(stats.tsc_backwards, 0u);
    EXPECT_EQ(stats.time_contradictions, 0u);
    EXPECT_EQ(stats.instructions_without_thread, 0u);
  }
}

// What NotBefore says, known without decoding, holds of all that is to come,
// and is of use: it grows while a thread is pulled.
TEST(StreamsTest, NothingComesBeforeWhatWasSaid) {
  const auto first =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  uint64_t grown = 0;
  for (uint64_t seed = first; seed < first + 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    SyntheticConfig config = RandomSyntheticConfig(seed, random);
    config.overflows = random.Below(2) == 0;
    const auto synthetic = MakeSynthetic(config);
    Decoded decoded = Decode(*synthetic);
    TraceStreams &streams = *decoded.streams;
    std::vector<Tid> left(streams.threads());
    std::map<Tid, TscTicks> said;
    while (!left.empty()) {
      for (const Tid tid : left) {  // of all, whoever is pulled
        const TscTicks now = streams.NotBefore(tid);
        ASSERT_GE(now, said[tid]) << "thread " << tid.as_int();
        grown += now > said[tid] ? 1 : 0;
        said[tid] = now;
      }
      const size_t pick = random.Below(left.size());
      const auto item = streams.Next(left[pick]);
      ASSERT_TRUE(item) << item.error().message;
      const std::optional<StreamItem> &next = *item;
      if (!next) {
        EXPECT_EQ(streams.NotBefore(left[pick]), TscTicks(~uint64_t{0}));
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(pick));
      } else if (const auto *block = std::get_if<StreamBlock>(&*next)) {
        ASSERT_LE(said[left[pick]], block->time.lo);
      }
    }
    EXPECT_EQ(streams.NotBefore(Tid(99'999)), TscTicks(0));
  }
  EXPECT_GT(grown, 100u);
}

// Without timing packets the order of slices is all there is, with PSB+ where
// threads are entered and where they are not.
TEST(StreamsTest, ThreadsAreToldApartWithoutAnyTime) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    SyntheticConfig config;
    config.seed = seed;
    config.insns = 5000;
    config.encoder.tsc = config.encoder.mtc = config.encoder.cyc = false;
    config.encoder.psb_period_bytes = 256u << (seed % 4);
    const auto synthetic = MakeSynthetic(config);
    Decoded decoded = Decode(*synthetic);
    for (const auto &[tid, truth] : synthetic->truth) {
      EXPECT_EQ(CheckThread(*decoded.streams, tid, truth).gaps, 0u);
      if (HasFailure()) {
        return;
      }
    }
  }
}

// Bounds must be true, and also of use: about as narrow as the MTC period.
// The mean of hi - lo over all instructions.
double WidthOfBounds(const recorder::EncoderConfig &encoder) {
  SyntheticConfig config;
  config.encoder = encoder;
  config.idle_one_in = 0;
  config.insns = 100000;
  const auto synthetic = MakeSynthetic(config);
  Decoded decoded = Decode(*synthetic);
  Checked all;
  for (const auto &[tid, truth] : synthetic->truth) {
    const Checked checked = CheckThread(*decoded.streams, tid, truth);
    all.insns += checked.insns;
    all.width += checked.width;
  }
  return all.width / static_cast<double>(all.insns);
}

TEST(StreamsTest, BoundsAreAsNarrowAsTheTimingPackets) {
  recorder::EncoderConfig encoder;
  encoder.mtc_period = 4;  // 40 * 2^4 = 640 ticks
  EXPECT_LT(WidthOfBounds(encoder), 1.2 * 640);
  encoder.cyc = true;
  EXPECT_LT(WidthOfBounds(encoder), 0.5 * 640);
}

TEST(StreamsTest, OverflowsAreGapsAndTheRestIsTrue) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    SyntheticConfig config;
    config.seed = seed;
    config.overflows = true;
    config.encoder.psb_period_bytes = 512;
    const auto synthetic = MakeSynthetic(config);
    Decoded decoded = Decode(*synthetic);
    Checked all;
    for (const auto &[tid, truth] : synthetic->truth) {
      const Checked checked = CheckThread(*decoded.streams, tid, truth);
      all.insns += checked.insns;
      all.gaps += checked.gaps;
      if (HasFailure()) {
        return;
      }
    }
    EXPECT_GT(all.gaps, 0u);
    EXPECT_GT(all.insns, config.insns * 9 / 10);
  }
}

// Decodes all of it; what it cannot, must be an error with a place or a gap.
Status Drain(std::span<const std::byte> bytes, const TraceConfig &config,
             uint64_t &gaps) {
  CLEW_ASSIGN_OR_RETURN(data, PerfData::Over(bytes, "hostile"));
  CLEW_ASSIGN_OR_RETURN(trace, PerfTrace::Load(std::move(data), config));
  CLEW_ASSIGN_OR_RETURN(streams, TraceStreams::Create(*trace, {}));
  for (const Tid tid : streams->threads()) {
    while (true) {
      CLEW_ASSIGN_OR_RETURN(item, streams->Next(tid));
      if (!item) {
        break;
      }
      if (const auto *block = std::get_if<StreamBlock>(&*item)) {
        EXPECT_LE(block->time.lo, block->time.hi);
        EXPECT_GT(block->insn_count, 0u);
      } else {
        ++gaps;
      }
    }
  }
  return {};
}

// Goal: no byte of the file makes the decoder crash, hang or go silent.
// Method: property; one bit flipped, or all behind a place cut off. With the
// second seed a TSC is later than what the next piece says.
class HostileStreamsTest : public testing::TestWithParam<uint64_t> {};

TEST_P(HostileStreamsTest, EndInAnErrorOrInGaps) {
  const uint64_t seed = GetParam();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  SyntheticConfig config;
  config.seed = seed;
  config.insns = 4000;
  config.encoder.psb_period_bytes = 256;
  const auto synthetic = MakeSynthetic(config);
  auto bytes = ReadWholeFile(synthetic->perf_path);
  ASSERT_TRUE(bytes);
  uint64_t gaps = 0;
  uint64_t errors = 0;
  const auto check = [&](std::span<const std::byte> hostile) {
    const Status status = Drain(hostile, synthetic->Config(), gaps);
    if (!status) {
      ++errors;
      EXPECT_TRUE(status.error().code == ErrorCode::kCorruptInput ||
                  status.error().code == ErrorCode::kUnsupported)
          << status.error().message;
      EXPECT_THAT(status.error().message, testing::HasSubstr("hostile: "));
    }
  };
  for (int i = 0; i < 300; ++i) {
    const uint64_t at = random.Below(bytes->size());
    const auto bit = static_cast<std::byte>(1u << random.Below(8));
    (*bytes)[at] ^= bit;
    check(*bytes);
    (*bytes)[at] ^= bit;
  }
  EXPECT_GT(gaps, 0u);
  for (int i = 0; i < 100; ++i) {
    check(std::span(*bytes).first(random.Below(bytes->size())));
  }
  EXPECT_GT(errors, 50u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileStreamsTest,
                         testing::Values(uint64_t{1}, uint64_t{66686}));

// Goal: no thread's stream is lost where code is missing.
TEST(StreamsTest, MissingCodeIsAGapThatNamesTheFile) {
  SyntheticConfig config;
  config.insns = 2000;
  const auto synthetic = MakeSynthetic(config);
  TraceConfig without = synthetic->Config();
  without.resolve_image = {};
  auto trace = PerfTrace::Load(*PerfData::Open(synthetic->perf_path), without);
  ASSERT_TRUE(trace);
  auto streams = TraceStreams::Create(**trace, {});
  ASSERT_TRUE(streams);
  for (const auto &[tid, truth] : synthetic->truth) {
    auto item = (*streams)->Next(tid);
    ASSERT_TRUE(item) << item.error().message;
    const std::optional<StreamItem> &first = *item;
    const auto *gap = first ? std::get_if<Gap>(&*first) : nullptr;
    ASSERT_NE(gap, nullptr);
    EXPECT_EQ(gap->cause, GapCause::kCodeMissing);
    EXPECT_THAT(gap->detail, testing::HasSubstr(synthetic->code_path));
    EXPECT_THAT(gap->detail, testing::HasSubstr("01020304"));
  }
}

TEST(StreamsTest, ALimitOnWaitingItemsIsAnErrorThatNamesIt) {
  SyntheticConfig config;
  const auto synthetic = MakeSynthetic(config);
  auto trace = PerfTrace::Load(*PerfData::Open(synthetic->perf_path),
                               synthetic->Config());
  ASSERT_TRUE(trace);
  auto streams = TraceStreams::Create(
      **trace, {.buffered_items_max = 50, .code_cache_bytes = 1 << 20});
  ASSERT_TRUE(streams);
  // One thread alone, to the end: the others wait.
  Result<std::optional<StreamItem>> item = std::optional<StreamItem>();
  do {
    item = (*streams)->Next((*streams)->threads().back());
  } while (item && *item);
  ASSERT_FALSE(item);
  EXPECT_EQ(item.error().code, ErrorCode::kLimit);
  EXPECT_THAT(item.error().message, testing::HasSubstr("buffered_items_max"));
}

TEST(StreamsTest, TheCpuIsWhatTheFileSaysUnlessItsOwnerKnowsBetter) {
  const auto synthetic = MakeSynthetic({});
  const auto load = [&](const TraceConfig &config) {
    auto trace = PerfTrace::Load(*PerfData::Open(synthetic->perf_path), config);
    EXPECT_TRUE(trace);
    return (*trace)->cpu();
  };
  TraceConfig config = synthetic->Config();
  EXPECT_EQ(load(config), ParseCpuId(PerfDataConfig().cpu_id));
  EXPECT_TRUE(load(config).is_intel);
  config.cpu = CpuIdentity{};
  EXPECT_FALSE(load(config).is_intel);
}

// Goal: perf, which shares no code with us, sees the same branches.
// Method: differential, thread by thread.
TEST(StreamsTest, BranchesEqualPerfs) {
  SyntheticConfig config;
  config.seed = 5;
  config.insns = 20000;
  const auto synthetic = MakeSynthetic(config);
  auto theirs = BranchesOfPerf(synthetic->perf_path);
  if (!theirs && theirs.error().code == ErrorCode::kUnsupported) {
    GTEST_SKIP() << theirs.error().message;
  }
  ASSERT_TRUE(theirs) << theirs.error().message;
  Decoded decoded = Decode(*synthetic);
  auto ours = BranchesOfStreams(*decoded.streams);
  ASSERT_TRUE(ours) << ours.error().message;
  ForgetOpenEnds(*theirs, *ours);
  for (const auto &[tid, branches] : *ours) {
    ASSERT_TRUE(theirs->contains(tid)) << tid.as_int();
    const auto &of_perf = theirs->at(tid);
    for (size_t i = 0; i < std::min(branches.size(), of_perf.size()); ++i) {
      ASSERT_EQ(branches[i], of_perf[i]) << fmt::format(
          "thread {} branch {}: {:#x} => {:#x}, perf {:#x} => {:#x}", tid, i,
          branches[i].from, branches[i].to, of_perf[i].from, of_perf[i].to);
    }
    EXPECT_EQ(branches.size(), of_perf.size()) << tid.as_int();
  }
}

}  // namespace
}  // namespace clew::decoder
