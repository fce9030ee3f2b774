// Goal: where the code of a file is missing, what ran elsewhere is still
// decoded, no less of it than perf decodes; every instruction that is reported
// ran, in this order and within its bounds; what is left out is a gap with its
// place. Method: property, random programs with half of their code in a file
// that is gone, whose true instructions are known; differential against perf.
// The seed is in every message.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "common/digest.h"
#include "decoder/streams.h"
#include "tests/decoder/perf_script.h"
#include "tests/decoder/synthetic.h"

namespace clew::decoder {
namespace {

struct Insn {
  TraceeAddr ip;
  TscInterval time;
};

// What a thread ran between two gaps.
using Stretch = std::vector<Insn>;

struct Decoded {
  std::map<Tid, std::vector<Stretch>> stretches;
  std::vector<Gap> gaps;
  uint64_t insns = 0;
};

Decoded Decode(const Synthetic& synthetic, bool like_hardware) {
  Decoded decoded;
  const auto trace = LoadTrace(synthetic, like_hardware);
  auto streams = TraceStreams::Create(*trace, {});
  EXPECT_TRUE(streams) << streams.error().message;
  for (const Tid tid : (*streams)->threads()) {
    auto& stretches = decoded.stretches[tid];
    stretches.emplace_back();
    for (auto item = (*streams)->Next(tid);; item = (*streams)->Next(tid)) {
      EXPECT_TRUE(item) << item.error().message;
      const std::optional<StreamItem>& next = *item;
      if (!next) {
        break;
      }
      if (const auto* gap = std::get_if<Gap>(&*next)) {
        decoded.gaps.push_back(*gap);
        stretches.emplace_back();
        continue;
      }
      const auto& block = std::get<StreamBlock>(*next);
      const Status walked =
          (*streams)->ForEachInstruction(block, [&](const WalkedInsn& insn) {
            stretches.back().push_back({insn.ip, block.time});
          });
      EXPECT_TRUE(walked) << walked.error().message;
      decoded.insns += block.insn_count;
    }
  }
  return decoded;
}

bool Matches(const Insn& insn, const TrueInsn& truth) {
  return insn.ip == truth.ip && insn.time.lo <= truth.time &&
         truth.time <= insn.time.hi;
}

// Each stretch, whole, behind the one before it.
void ExpectInOrder(const std::vector<Stretch>& stretches,
                   const std::vector<TrueInsn>& truth, Tid tid) {
  auto from = truth.begin();
  for (const Stretch& stretch : stretches) {
    const auto found =
        std::search(from, truth.end(), stretch.begin(), stretch.end(),
                    [](auto& a, auto& b) { return Matches(b, a); });
    ASSERT_TRUE(found != truth.end() || stretch.empty())
        << fmt::format("thread {} never ran {} instructions from {:#x} on", tid,
                       stretch.size(), stretch.front().ip);
    from = found + static_cast<std::ptrdiff_t>(stretch.size());
  }
}

uint64_t CountTrue(const Synthetic& synthetic) {
  uint64_t insns = 0;
  for (const auto& [tid, truth] : synthetic.truth) {
    insns += truth.size();
  }
  return insns;
}

SyntheticConfig LibraryConfig(uint64_t seed, Random& random) {
  SyntheticConfig config = RandomSyntheticConfig(seed, random);
  config.has_library = true;
  return config;
}

TEST(ResumeTest, WithoutALibraryTheRestIsTrue) {
  const auto first =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  uint64_t kept = 0;
  uint64_t all = 0;
  for (uint64_t seed = first; seed < first + 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    SyntheticConfig config = LibraryConfig(seed, random);
    config.overflows = random.Below(4) == 0;
    const auto synthetic = MakeSynthetic(config);
    std::filesystem::remove(synthetic->path_of_library);
    const Decoded decoded = Decode(*synthetic, random.Below(2) == 0);
    for (const auto& [tid, stretches] : decoded.stretches) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectInOrder(stretches, synthetic->truth[tid], tid));
    }
    EXPECT_FALSE(decoded.gaps.empty());
    kept += decoded.insns;
    all += CountTrue(*synthetic);
  }
  // Half of the code is there.
  EXPECT_GT(kept * 100, all * 35) << kept << " of " << all;
}

// Gaps of one core, each of which is in every slice that it may touch.
TEST(ResumeTest, GapsDoNotOverlap) {
  Random random(3);
  SyntheticConfig config = LibraryConfig(3, random);
  config.cores = config.threads = 1;
  const auto synthetic = MakeSynthetic(config);
  std::filesystem::remove(synthetic->path_of_library);
  const Decoded decoded = Decode(*synthetic, false);
  std::map<uint64_t, uint64_t> bytes_at;
  for (const Gap& gap : decoded.gaps) {
    const uint64_t bytes =
        bytes_at.try_emplace(gap.aux_offset, gap.bytes).first->second;
    EXPECT_EQ(bytes, gap.bytes) << gap.detail;
  }
  uint64_t end = 0;
  uint64_t lost = 0;
  for (const auto& [offset, bytes] : bytes_at) {
    EXPECT_GE(offset, end);
    end = offset + bytes;
    lost += bytes;
  }
  const uint64_t bytes = synthetic->pt.begin()->second.size();
  EXPECT_LE(end, bytes + 8);
  EXPECT_GT(lost, 0u);
  EXPECT_LT(lost, bytes * 3 / 4);
}

TEST(ResumeTest, NoLessIsKeptThanPerfKeeps) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    SyntheticConfig config = LibraryConfig(seed, random);
    config.insns = 20000;
    config.encoder.mtc = true;
    const auto synthetic = MakeSynthetic(config);
    std::filesystem::remove(synthetic->path_of_library);
    const auto of_perf = InstructionsOfPerf(synthetic->perf_path);
    if (!of_perf && of_perf.error().code == ErrorCode::kUnsupported) {
      GTEST_SKIP() << of_perf.error().message;
    }
    ASSERT_TRUE(of_perf) << of_perf.error().message;
    ASSERT_GT(*of_perf, 100u);
    const Decoded ours = Decode(*synthetic, false);
    RecordProperty(fmt::format("seed{}", seed),
                   fmt::format("{} perf {}", ours.insns, *of_perf));
    EXPECT_GE(ours.insns, *of_perf) << "of " << CountTrue(*synthetic);
  }
}

}  // namespace
}  // namespace clew::decoder
