// Goal: the perf.data reader gives what `perf report -D` gives on real captures
// in both formats, and refuses whatever breaks the format, with a place.
// Method: counts against Debian 12's perf (of the captures in tests/data);
// truncation and bit flips of the captures, seed printed.

#include "bundle/perf_data/perf_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "bundle/perf_data/cpu_id.h"
#include "common/digest.h"
#include "decoder/perf_trace.h"
#include "decoder/pt/packet.h"
#include "tests/support/captures.h"

namespace clew::decoder {
namespace {

using bundle::MmapRecord;
using bundle::ParseCpuId;
using bundle::PerfData;
using bundle::PerfFeatures;
using bundle::Record;
using test::kCapture;
using test::kPipedCapture;

std::map<std::string, uint64_t> CountRecords(const std::string& path) {
  auto data = PerfData::Open(path);
  EXPECT_TRUE(data) << data.error().message;
  auto trace = PerfTrace::Load(std::move(*data), {});
  EXPECT_TRUE(trace) << trace.error().message;
  std::map<std::string, uint64_t> counts;
  for (const auto& [name, count] : (*trace)->RecordCounts()) {
    counts[name] = count;
  }
  return counts;
}

std::map<std::string, uint64_t> CountPackets(const std::string& path) {
  auto trace = PerfTrace::Load(*PerfData::Open(path), {});
  EXPECT_TRUE(trace) << trace.error().message;
  std::map<std::string, uint64_t> counts;
  for (const CoreTrace& core : (*trace)->cores()) {
    for (const AuxPiece& piece : core.pieces) {
      PacketReader reader(piece.bytes);
      Packet packet;
      if (reader.SyncAt(0)) {
        while (reader.Next(packet)) {
          ++counts[PacketName(packet)];
        }
        EXPECT_EQ(reader.error(), nullptr) << reader.error();
        EXPECT_EQ(reader.offset(), piece.bytes.size());
      }
    }
  }
  return counts;
}

TEST(PerfDataTest, FileFormatHasPerfsRecordCounts) {
  auto counts = CountRecords(kCapture);
  EXPECT_EQ(counts["AUXTRACE"], 2u);
  EXPECT_EQ(counts["AUX"], 10u);
  EXPECT_EQ(counts["SWITCH_CPU_WIDE"], 152u);
  EXPECT_EQ(counts["MMAP"], 56u);
  EXPECT_EQ(counts["MMAP2"], 10u);
  EXPECT_EQ(counts["COMM"], 3u);
  EXPECT_EQ(counts["EXIT"], 1u);
  EXPECT_EQ(counts["ITRACE_START"], 2u);
}

// Figures of `perf report -D -i - < perf.data.piped`. (Given the file by name,
// perf stops half way, at the first AUXTRACE.)
TEST(PerfDataTest, PipeFormatHasPerfsRecordCounts) {
  auto counts = CountRecords(kPipedCapture);
  EXPECT_EQ(counts["ATTR"], 4u);
  EXPECT_EQ(counts["AUXTRACE"], 2u);
  EXPECT_EQ(counts["AUX"], 8u);
  EXPECT_EQ(counts["SWITCH_CPU_WIDE"], 552u);
  EXPECT_EQ(counts["MMAP"], 56u);
  EXPECT_EQ(counts["MMAP2"], 10u);
  EXPECT_EQ(counts["COMM"], 3u);
  EXPECT_EQ(counts["SAMPLE"], 11u);
  EXPECT_EQ(counts["FEATURE"], 12u);
}

TEST(PerfDataTest, FileFormatHasPerfsPacketCounts) {
  auto counts = CountPackets(kCapture);
  EXPECT_EQ(counts["TNT"], 69516u);
  EXPECT_EQ(counts["TIP"], 12039u);
  EXPECT_EQ(counts["TIP.PGE"], 10u);
  EXPECT_EQ(counts["TIP.PGD"], 10u);
  EXPECT_EQ(counts["FUP"], 149u);
  EXPECT_EQ(counts["MTC"], 2802u);
  EXPECT_EQ(counts["CYC"], 0u);
  EXPECT_EQ(counts["TSC"], 24u);
  EXPECT_EQ(counts["TMA"], 24u);
  EXPECT_EQ(counts["CBR"], 24u);
  EXPECT_EQ(counts["PIP"], 441u);
  EXPECT_EQ(counts["MODE.Exec"], 18u);
  EXPECT_EQ(counts["MODE.TSX"], 16u);
  EXPECT_EQ(counts["PSBEND"], 10u);
}

TEST(PerfDataTest, PipeFormatHasPerfsPacketCounts) {
  auto counts = CountPackets(kPipedCapture);
  EXPECT_EQ(counts["TNT"], 69470u);
  EXPECT_EQ(counts["TIP"], 11878u);
  EXPECT_EQ(counts["TIP.PGE"], 8u);
  EXPECT_EQ(counts["TIP.PGD"], 8u);
  EXPECT_EQ(counts["FUP"], 144u);
  EXPECT_EQ(counts["MTC"], 3050u);
  EXPECT_EQ(counts["CYC"], 0u);
  EXPECT_EQ(counts["TSC"], 21u);
  EXPECT_EQ(counts["TMA"], 21u);
  EXPECT_EQ(counts["CBR"], 21u);
  EXPECT_EQ(counts["PIP"], 428u);
  EXPECT_EQ(counts["MODE.Exec"], 16u);
  EXPECT_EQ(counts["MODE.TSX"], 16u);
  EXPECT_EQ(counts["PSBEND"], 10u);
}

TEST(PerfDataTest, ClockAndSizesAreThoseOfTheCapture) {
  auto trace = PerfTrace::Load(*PerfData::Open(kCapture), {});
  ASSERT_TRUE(trace);
  EXPECT_EQ((*trace)->conversion().shift, 31u);
  EXPECT_EQ((*trace)->conversion().mult, 1789569706u);
  EXPECT_EQ((*trace)->conversion().zero, 18446744041015200657u);
  EXPECT_EQ((*trace)->timing().ctc_numerator, 100u);
  EXPECT_EQ((*trace)->timing().ctc_denominator, 2u);
  ASSERT_EQ((*trace)->cores().size(), 2u);
  EXPECT_EQ((*trace)->cores()[0].core, CoreId(0));
  EXPECT_EQ((*trace)->cores()[0].bytes, 0x2fd0u);
  EXPECT_EQ((*trace)->cores()[1].core, CoreId(3));
  EXPECT_EQ((*trace)->cores()[1].bytes, 0x21a00u);
}

// The clock that a TSC packet and a switch record share must not disagree: the
// whole capture's packets lie between its first and its last record.
TEST(PerfDataTest, SlicesOfARealCaptureAreInOrder) {
  auto trace = PerfTrace::Load(*PerfData::Open(kCapture), {});
  ASSERT_TRUE(trace);
  const auto& slices = (*trace)->slices();
  ASSERT_GT(slices.size(), 10u);
  for (size_t i = 1; i < slices.size(); ++i) {
    if (slices[i].core == slices[i - 1].core) {
      // The kernel stamps "out" and the next "in" a little apart.
      EXPECT_LE(slices[i - 1].time.lo, slices[i].time.lo) << i;
      EXPECT_EQ(slices[i].on_core, slices[i - 1].on_core + 1) << i;
    }
  }
}

TEST(PerfDataTest, TheCpuIsTheCapturesInBothFormats) {
  for (const char* name : {kCapture, kPipedCapture}) {
    auto trace = PerfTrace::Load(*PerfData::Open(name), {});
    ASSERT_TRUE(trace);
    const CpuIdentity m7_6y75 = {
        .is_intel = true, .family = 6, .model = 78, .stepping = 3};
    EXPECT_EQ((*trace)->cpu(), m7_6y75) << name;
  }
}

// As `perf buildid-list` and `perf report --header-only` tell.
TEST(PerfDataTest, FeaturesTellWhereAndOfWhatBuilds) {
  auto data = PerfData::Open(kCapture);
  ASSERT_TRUE(data) << data.error().message;
  const PerfFeatures& features = data->features();
  EXPECT_EQ(features.host, "localhost");
  EXPECT_EQ(features.os_release, "4.14.18");
  EXPECT_EQ(features.cpu_description,
            "Intel(R) Core(TM) m7-6Y75 CPU @ 1.20GHz");
  ASSERT_EQ(features.command.size(), 11u);
  EXPECT_EQ(features.command[10], "Hello, World!");
  EXPECT_TRUE(data->feature_faults().empty());
  const auto kernel = features.BuildIdOf("[kernel.kallsyms]_text");
  ASSERT_EQ(kernel.size(), 20u);
  EXPECT_EQ(kernel.front(), std::byte{0x67});
  EXPECT_EQ(kernel.back(), std::byte{0x42});
  EXPECT_TRUE(features.BuildIdOf("/no/such/file").empty());
  uint64_t mappings = 0;
  ASSERT_TRUE(data->ForEachRecord([&](const Record& record) -> Status {
    if (const auto* mmap = std::get_if<MmapRecord>(&record.body)) {
      EXPECT_EQ(mmap->build_id.size(), 20u) << mmap->path;
      ++mappings;
    }
    return {};
  }));
  EXPECT_EQ(mappings, 66u);
}

TEST(PerfDataTest, ADamagedFeatureIsNamedAndTheRestRead) {
  auto bytes = ReadWholeFile(kCapture);
  ASSERT_TRUE(bytes);
  // The table of features is behind the data, at 168872; the build-ids' entry
  // is its first.
  (*bytes)[168872 + 7] = std::byte{0x7f};
  auto data = PerfData::Over(*bytes, "hostile");
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ(data->feature_faults().size(), 1u);
  EXPECT_THAT(data->feature_faults()[0], testing::HasSubstr("feature 2"));
  EXPECT_EQ(data->features().os_release, "4.14.18");
}

TEST(CpuIdTest, IntelsAreKnownAndAnythingElseHasNoErrata) {
  const CpuIdentity kaby_lake = {
      .is_intel = true, .family = 6, .model = 158, .stepping = 10};
  EXPECT_EQ(ParseCpuId("GenuineIntel,6,158,10"), kaby_lake);
  for (const char* text :
       {"", "GenuineIntel", "GenuineIntel,", "GenuineIntel,6,158",
        "GenuineIntel,6,158,", "GenuineIntel,6,256,10", "GenuineIntel,-6,1,1",
        "GenuineIntel,6,158,10,1", "GenuineIntel,6 158,10", "xGenuineIntel,6,1",
        "AuthenticAMD,25,33,0"}) {
    EXPECT_EQ(ParseCpuId(text), CpuIdentity{}) << text;
  }
}

Status ReadAll(std::span<const std::byte> bytes) {
  CLEW_ASSIGN_OR_RETURN(data, PerfData::Over(bytes, "hostile"));
  CLEW_ASSIGN_OR_RETURN(trace, PerfTrace::Load(std::move(data), {}));
  for (const CoreTrace& core : trace->cores()) {
    for (const AuxPiece& piece : core.pieces) {
      PacketReader reader(piece.bytes);
      Packet packet;
      for (bool on = reader.SyncAt(0); on;
           on = reader.SyncAt(reader.offset() + 1)) {
        while (reader.Next(packet)) {
        }
      }
    }
  }
  return {};
}

void ExpectLocated(const Status& status) {
  if (!status && status.error().code == ErrorCode::kCorruptInput) {
    EXPECT_THAT(status.error().message, testing::HasSubstr("hostile: "));
  }
}

TEST(PerfDataTest, EveryTruncationIsReadOrRefusedWithAPlace) {
  const auto bytes = ReadWholeFile(kPipedCapture);
  ASSERT_TRUE(bytes);
  int refused = 0;
  for (size_t i = 0; i < 200; ++i) {
    const size_t size = bytes->size() * i / 200;
    const Status status = ReadAll(std::span(*bytes).first(size));
    ExpectLocated(status);
    refused += status ? 0 : 1;
  }
  EXPECT_GT(refused, 100);  // in the middle of an AUXTRACE record, mostly
}

TEST(PerfDataTest, BitFlipsNeverCrash) {
  const auto bytes = ReadWholeFile(kCapture);
  ASSERT_TRUE(bytes);
  const auto seed =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  std::vector<std::byte> copy = *bytes;
  for (int i = 0; i < 400; ++i) {
    // Half of them in the sideband's dense beginning.
    const uint64_t at = random.Below(i % 2 ? copy.size() : 8192);
    const auto bit = static_cast<std::byte>(1u << random.Below(8));
    copy[at] ^= bit;
    ExpectLocated(ReadAll(copy));
    copy[at] ^= bit;
  }
}

TEST(PerfDataTest, RefusesWhatIsNoPerfData) {
  const std::string text = "not a perf.data file, not at all";
  const auto data = PerfData::Over(std::as_bytes(std::span(text)), "hostile");
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, ErrorCode::kCorruptInput);
  EXPECT_THAT(data.error().message, testing::HasSubstr("offset 0x0: magic"));
}

}  // namespace
}  // namespace clew::decoder
