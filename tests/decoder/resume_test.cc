// Goal: where the code of a file is missing, what ran elsewhere is still
// decoded, no less of it than perf decodes; every instruction that is reported
// ran, in this order and within its bounds; what is left out is a gap with its
// place: it begins at the first instruction that is missing and ends where the
// next one is told. Method: property, random programs with half of their code
// in a file that is gone, whose true instructions are known; differential
// against perf. The seed is in every message.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "common/digest.h"
#include "decoder/pt/packet.h"
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

struct Share {
  uint64_t kept = 0;
  uint64_t all = 0;
};

// Of random programs whose library is gone; everything that is told is true.
Share DecodeWithoutLibrary(bool linked_directly) {
  const auto first =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  Share share;
  for (uint64_t seed = first; seed < first + 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    SyntheticConfig config = LibraryConfig(seed, random);
    config.overflows = random.Below(4) == 0;
    config.linked_directly = linked_directly;
    const auto synthetic = MakeSynthetic(config);
    std::filesystem::remove(synthetic->path_of_library);
    const Decoded decoded = Decode(*synthetic, random.Below(2) == 0);
    for (const auto& [tid, stretches] : decoded.stretches) {
      ExpectInOrder(stretches, synthetic->truth[tid], tid);
    }
    EXPECT_FALSE(decoded.gaps.empty());
    share.kept += decoded.insns;
    share.all += CountTrue(*synthetic);
  }
  return share;
}

TEST(ResumeTest, WithoutALibraryTheRestIsTrue) {
  const Share share = DecodeWithoutLibrary(/*linked_directly=*/false);
  // Half of the code is there.
  EXPECT_GT(share.kept * 100, share.all * 35)
      << share.kept << " of " << share.all;
}

TEST(ResumeTest, WithDirectBranchesIntoTheLibraryTheRestIsTrue) {
  const Share share = DecodeWithoutLibrary(/*linked_directly=*/true);
  // More branches lead there than back: less than half is here.
  EXPECT_GT(share.kept * 100, share.all * 20)
      << share.kept << " of " << share.all;
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

// One thread on one core, whose direct branches lead into the missing file.
std::unique_ptr<Synthetic> OneThread(uint64_t seed, Random& random) {
  SyntheticConfig config = LibraryConfig(seed, random);
  config.cores = config.threads = 1;
  config.insns = 4000;
  config.linked_directly = true;
  config.interrupt_one_in = 30;
  auto synthetic = MakeSynthetic(config);
  std::filesystem::remove(synthetic->path_of_library);
  return synthetic;
}

// Stretch i is before gap i. A gap is in every slice that it may touch: here
// only in the first, where it was met.
std::vector<size_t> MissingCodeGaps(const Decoded& decoded) {
  std::vector<size_t> found;
  std::set<uint64_t> seen;
  for (size_t i = 0; i < decoded.gaps.size(); ++i) {
    const Gap& gap = decoded.gaps[i];
    const bool is_new = seen.insert(gap.aux_offset).second;
    if (gap.cause == GapCause::kCodeMissing && is_new) {
      found.push_back(i);
    }
  }
  return found;
}

// All that ran before the first missing instruction is told, and its address.
TEST(ResumeTest, AGapBeginsAtTheFirstMissingInstruction) {
  const auto first =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  uint64_t gaps = 0;
  for (uint64_t seed = first; seed < first + 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const auto synthetic = OneThread(seed, random);
    Decoded decoded = Decode(*synthetic, random.Below(2) == 0);
    auto& [tid, stretches] = *decoded.stretches.begin();
    std::vector<Stretch> up_to_missing;
    for (const size_t i : MissingCodeGaps(decoded)) {
      const Gap& gap = decoded.gaps[i];
      EXPECT_GE(gap.ip, synthetic->base_of_library) << gap.detail;
      // Nothing tells of what ran last before the trace ends.
      if (gap.detail.find("no PSB follows") == std::string::npos) {
        stretches[i].push_back({gap.ip, gap.time});
        up_to_missing.push_back(stretches[i]);
      }
    }
    ASSERT_NO_FATAL_FAILURE(
        ExpectInOrder(up_to_missing, synthetic->truth[tid], tid));
    gaps += up_to_missing.size();
  }
  EXPECT_GT(gaps, 1000u);
}

// The offset behind "resuming at the <packet> at".
std::optional<uint64_t> ResumedAt(const Gap& gap) {
  const size_t place = gap.detail.rfind("resuming at the ");
  const size_t at =
      place == std::string::npos ? place : gap.detail.find(" at 0x", place);
  return at == std::string::npos ? std::nullopt
                                 : std::optional(std::stoull(
                                       gap.detail.substr(at + 4), nullptr, 16));
}

// An interrupt before the first instruction there is what comes next.
bool InterruptedAtOnce(PacketReader& reader, const Packet& tip) {
  Packet next;
  return reader.Next(next) && next.type == PacketType::kFup &&
         (next.value & 0xffff) == (tip.value & 0xffff);
}

// The TIP or TIP.PGE at `offset`, if an instruction runs where it leads to.
std::optional<Packet> LeadingPacket(const std::vector<uint8_t>& pt,
                                    uint64_t offset) {
  PacketReader reader(std::as_bytes(std::span(pt)));
  reader.SetOffset(offset);
  Packet packet;
  EXPECT_TRUE(reader.Next(packet)) << offset;
  const bool leads =
      packet.type == PacketType::kTip || packet.type == PacketType::kTipPge;
  return leads && !InterruptedAtOnce(reader, packet) ? std::optional(packet)
                                                     : std::nullopt;
}

// Of several places without code in a row, which are one gap, the last.
TEST(ResumeTest, AGapNamesWhereInstructionsComeAgain) {
  uint64_t tips = 0;
  uint64_t rows = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const auto synthetic = OneThread(seed, random);
    const Decoded decoded = Decode(*synthetic, false);
    const auto& stretches = decoded.stretches.begin()->second;
    for (const size_t i : MissingCodeGaps(decoded)) {
      const Gap& gap = decoded.gaps[i];
      const auto at = ResumedAt(gap);
      if (!at) {
        continue;
      }
      EXPECT_EQ(*at, gap.aux_offset + gap.bytes) << gap.detail;
      const auto packet = LeadingPacket(synthetic->pt.begin()->second, *at);
      if (packet && !stretches[i + 1].empty()) {
        // The packet has the low bits at least.
        const uint64_t ip = stretches[i + 1].front().ip.as_int();
        EXPECT_EQ(ip & 0xffff, packet->value & 0xffff) << gap.detail;
        ++tips;
      }
      rows += gap.bytes > 40 ? 1 : 0;
    }
  }
  EXPECT_GT(tips, 300u);
  EXPECT_GT(rows, 100u);
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
    const auto ips = IpsOfPerf(synthetic->perf_path);
    if (!ips && ips.error().code == ErrorCode::kUnsupported) {
      GTEST_SKIP() << ips.error().message;
    }
    ASSERT_TRUE(ips) << ips.error().message;
    uint64_t of_perf = 0;
    for (const auto& [thread, found] : *ips) {
      of_perf += found.size();
    }
    ASSERT_GT(of_perf, 100u);
    const Decoded ours = Decode(*synthetic, false);
    RecordProperty(fmt::format("seed{}", seed),
                   fmt::format("{} perf {}", ours.insns, of_perf));
    EXPECT_GE(ours.insns, of_perf) << "of " << CountTrue(*synthetic);
  }
}

}  // namespace
}  // namespace clew::decoder
