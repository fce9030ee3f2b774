// Goal: a ring that breaks the kernel's format gives an error that says where,
// loses what it says it loses and nothing more, and reading goes on behind it;
// the order and the spans of whole rings are as the headers promise.
// Method: hand-picked pages, heads and record headers, and every size of a
// record's header.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "recorder/perf/aux_ledger.h"
#include "recorder/perf/aux_ring.h"
#include "recorder/perf/data_ring.h"
#include "tests/recorder/perf/fake_ring.h"

namespace clew::recorder::perf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Collector final : public RecordSink, public AuxSink, public AuxGapSink {
 public:
  Status OnRecord(const RecordView& record) override {
    if (fail_at == types.size()) {
      return InvalidArgument("no more");
    }
    types.push_back(record.type);
    return {};
  }
  Status OnAux(const AuxRingPiece& piece) override {
    aux.assign(piece.first.begin(), piece.first.end());
    aux.insert(aux.end(), piece.second.begin(), piece.second.end());
    aux_offset = piece.offset;
    return {};
  }
  void OnGap(const AuxGap& gap) override { gaps.push_back(gap); }

  size_t fail_at = SIZE_MAX;
  std::vector<uint32_t> types;
  std::vector<std::byte> aux;
  uint64_t aux_offset = UINT64_MAX;
  std::vector<AuxGap> gaps;
};

DataRing MakeRing(FakeRing& fake, RingMode mode = RingMode::kForward) {
  return *DataRing::Create(fake.mapping(), mode, "core 3");
}

// The fake's records have 40 bytes and the body's.
constexpr uint64_t kRecordBytes = 40;

void SetSize(FakeRing& fake, uint64_t position, uint16_t size) {
  std::byte* header = fake.mapping().data() + 4096 + position;
  std::memcpy(header + offsetof(perf_event_header, size), &size, sizeof(size));
}

TEST(RingMalformedTest, EveryRecordSizeIsRefusedOrTaken) {
  for (uint32_t size = 0; size <= UINT16_MAX; ++size) {
    FakeRing fake(4096, 0, RingMode::kForward);
    ASSERT_TRUE(fake.Output(7, {}));
    ASSERT_TRUE(fake.Output(8, {}));
    SetSize(fake, kRecordBytes, static_cast<uint16_t>(size));
    DataRing ring = MakeRing(fake);
    Collector sink;
    const Status status = ring.Drain(sink);
    // The rest of the ring is zero, so a shorter size leads to a size of 0.
    ASSERT_EQ(status.has_value(), size == kRecordBytes) << size;
    ASSERT_EQ(ring.counts().delivered_bytes + ring.counts().skipped_bytes,
              2 * kRecordBytes);
    ASSERT_EQ(fake.page().data_tail, 2 * kRecordBytes);
    if (size > kRecordBytes || size < 8 || size % 8 != 0) {
      ASSERT_THAT(status.error().message, HasSubstr("position 0x28")) << size;
      ASSERT_THAT(sink.types, ElementsAre(7)) << size;
    }
  }
}

TEST(RingMalformedTest, ReadingGoesOnBehindADamagedRecord) {
  FakeRing fake(4096, 0, RingMode::kForward);
  ASSERT_TRUE(fake.Output(7, {}));
  SetSize(fake, 0, 0);
  DataRing ring = MakeRing(fake);
  Collector sink;
  const Status status = ring.Drain(sink);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "core 3: data ring: position 0x0: record of type 7 has size 0, "
            "wanted a multiple of 8 from 8 to the 0x28 bytes left");
  ASSERT_TRUE(fake.Output(9, {}));
  EXPECT_TRUE(ring.Drain(sink));
  EXPECT_THAT(sink.types, ElementsAre(9));
  EXPECT_EQ(ring.counts().skipped_bytes, kRecordBytes);
}

TEST(RingMalformedTest, HeadBehindTailTooFarOrUnalignedConsumesNothing) {
  for (const uint64_t head : {uint64_t{0} - 8, uint64_t{4104}, uint64_t{44},
                              UINT64_MAX, uint64_t{1} << 63}) {
    FakeRing fake(4096, 0, RingMode::kForward);
    ASSERT_TRUE(fake.Output(7, {}));
    DataRing ring = MakeRing(fake);
    const uint64_t good = fake.page().data_head;
    Collector sink;
    fake.page().data_head = head;
    const Status status = ring.Drain(sink);
    ASSERT_FALSE(status) << head;
    EXPECT_EQ(status.error().code, ErrorCode::kCorruptInput);
    EXPECT_THAT(status.error().message, HasSubstr("core 3: data ring: head"));
    EXPECT_EQ(fake.page().data_tail, 0u);
    fake.page().data_head = good;
    EXPECT_TRUE(ring.Drain(sink));
    EXPECT_THAT(sink.types, ElementsAre(7));
  }
}

TEST(RingMalformedTest, PagesThatPointOutsideAreRefused) {
  struct Case {
    uint64_t offset, size;
  };
  for (const Case c :
       {Case{0, 4096}, Case{64, 4096}, Case{4096, 0}, Case{4096, 4},
        Case{4096, 8192}, Case{4096, 4095}, Case{8192, 4096},
        Case{1 << 20, 4096}, Case{4096, UINT64_MAX}, Case{UINT64_MAX, 8}}) {
    FakeRing fake(4096, 0, RingMode::kForward);
    fake.page().data_offset = c.offset;
    fake.page().data_size = c.size;
    const auto ring =
        DataRing::Create(fake.mapping(), RingMode::kForward, "core 3");
    ASSERT_FALSE(ring) << c.offset << " " << c.size;
    EXPECT_THAT(ring.error().message, HasSubstr("core 3: "));
  }
  std::array<std::byte, 100> tiny = {};
  EXPECT_FALSE(DataRing::Create(tiny, RingMode::kForward, "core 3"));
}

TEST(RingMalformedTest, ARecordThatTheSinkRefusedComesAgain) {
  FakeRing fake(4096, 0, RingMode::kForward);
  for (const uint32_t type : {5, 6, 7}) {
    ASSERT_TRUE(fake.Output(type, {}));
  }
  DataRing ring = MakeRing(fake);
  Collector sink;
  sink.fail_at = 1;
  EXPECT_FALSE(ring.Drain(sink));
  EXPECT_EQ(fake.page().data_tail, kRecordBytes);
  sink.fail_at = SIZE_MAX;
  EXPECT_TRUE(ring.Drain(sink));
  EXPECT_THAT(sink.types, ElementsAre(5, 6, 7));
}

TEST(RingMalformedTest, OverwrittenRingTellsOldestFirstAndLostAhead) {
  FakeRing fake(512, 0, RingMode::kOverwrite);
  DataRing ring = MakeRing(fake, RingMode::kOverwrite);
  Collector sink;
  for (uint32_t type = 1000; type < 1020; ++type) {
    ASSERT_TRUE(fake.Output(type, {}));
  }
  fake.SetPaused(true);
  ASSERT_FALSE(fake.Output(1020, {}));
  ASSERT_TRUE(ring.ReadPaused(sink));
  // 12 of 40 bytes fit in 512.
  ASSERT_EQ(sink.types.size(), 12u);
  EXPECT_EQ(sink.types.front(), 1008u);
  EXPECT_EQ(sink.types.back(), 1019u);
  EXPECT_EQ(ring.counts().overwritten_bytes, 8 * kRecordBytes);
  fake.SetPaused(false);
  ASSERT_TRUE(fake.Output(1021, {}));
  ASSERT_TRUE(fake.Output(1022, {}));
  sink.types.clear();
  ASSERT_TRUE(ring.ReadPaused(sink));
  EXPECT_THAT(sink.types, ElementsAre(PERF_RECORD_LOST, 1021, 1022));
}

TEST(RingMalformedTest, DamageInAnOverwrittenRingIsCounted) {
  FakeRing fake(512, 0, RingMode::kOverwrite);
  DataRing ring = MakeRing(fake, RingMode::kOverwrite);
  ASSERT_TRUE(fake.Output(7, {}));
  ASSERT_TRUE(fake.Output(8, {}));
  SetSize(fake, 512 - kRecordBytes, 0);
  Collector sink;
  const Status status = ring.ReadPaused(sink);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("has size 0"));
  EXPECT_EQ(ring.counts().skipped_bytes, 2 * kRecordBytes);
  ASSERT_TRUE(fake.Output(9, {}));
  EXPECT_TRUE(ring.ReadPaused(sink));
  EXPECT_THAT(sink.types, ElementsAre(9));
}

AuxRing MakeAux(FakeRing& fake, RingMode mode) {
  return *AuxRing::Create(fake.page(), fake.aux_area(), mode, "core 3");
}

TEST(RingMalformedTest, AuxHeadOutOfReachConsumesNothing) {
  FakeRing fake(4096, 4096, RingMode::kForward);
  AuxRing ring = MakeAux(fake, RingMode::kForward);
  Collector sink;
  fake.page().aux_head = 4097;
  const Status status = ring.Drain(sink);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("core 3: AUX ring: head"));
  EXPECT_TRUE(sink.aux.empty());
  fake.page().aux_head = 4096;
  EXPECT_TRUE(ring.Drain(sink));
  EXPECT_EQ(sink.aux.size(), 4096u);
  EXPECT_EQ(fake.page().aux_tail, 4096u);
}

TEST(RingMalformedTest, AuxAreaMustBeWhatThePageSays) {
  FakeRing fake(4096, 4096, RingMode::kForward);
  const auto create = [&](size_t bytes) {
    return AuxRing::Create(fake.page(), fake.aux_area().first(bytes),
                           RingMode::kForward, "core 3");
  };
  EXPECT_TRUE(create(4096));
  EXPECT_FALSE(create(2048));
  EXPECT_FALSE(create(4000));
  EXPECT_FALSE(create(0));
}

// The area of a fake, which a snapshot ring only reads.
void FillAux(FakeRing& fake, size_t begin, size_t end, uint8_t value) {
  auto* area = const_cast<std::byte*>(fake.aux_area().data());
  std::fill(area + begin, area + end, std::byte{value});
}

TEST(RingMalformedTest, SnapshotBeginsBehindTheHeadOnceTheRingWentRound) {
  FakeRing fake(4096, 4096, RingMode::kForward);
  AuxRing ring = MakeAux(fake, RingMode::kOverwrite);
  Collector sink;
  ASSERT_TRUE(ring.ReadSnapshot(sink));
  EXPECT_EQ(sink.aux_offset, UINT64_MAX) << "an empty ring has no bytes";

  FillAux(fake, 0, 100, 1);
  fake.page().aux_head = 100;
  ASSERT_TRUE(ring.ReadSnapshot(sink));
  EXPECT_EQ(sink.aux, std::vector<std::byte>(100, std::byte{1}));

  FillAux(fake, 100, 4096, 1);
  FillAux(fake, 0, 10, 2);
  fake.page().aux_head = 10;  // intel_pt tells the place, not the count
  ASSERT_TRUE(ring.ReadSnapshot(sink));
  ASSERT_EQ(sink.aux.size(), 4096u);
  EXPECT_EQ(sink.aux_offset, 100u);
  EXPECT_EQ(sink.aux[4085], std::byte{1});
  EXPECT_EQ(sink.aux[4086], std::byte{2});
}

TEST(AuxLedgerTest, HolesFlagsAndContradictionsAreTold) {
  Collector sink;
  AuxLedger ledger(sink, "core 3");
  ASSERT_TRUE(ledger.OnAuxRecord({.offset_bytes = 0, .size_bytes = 64}));
  ASSERT_TRUE(ledger.OnAuxRecord({.offset_bytes = 100,
                                  .size_bytes = 20,
                                  .flags = PERF_AUX_FLAG_TRUNCATED |
                                           PERF_AUX_FLAG_PARTIAL |
                                           PERF_AUX_FLAG_COLLISION}));
  const Status overlap =
      ledger.OnAuxRecord({.offset_bytes = 119, .size_bytes = 20});
  ASSERT_FALSE(overlap);
  EXPECT_EQ(overlap.error().message,
            "core 3: AUX record of 0x14 bytes at 0x77, wanted one from 0x78 "
            "on");
  EXPECT_FALSE(
      ledger.OnAuxRecord({.offset_bytes = UINT64_MAX - 4, .size_bytes = 20}));
  EXPECT_FALSE(ledger.Close(119));
  ASSERT_TRUE(ledger.Close(130));
  EXPECT_EQ(ledger.counts().described_bytes, 84u);
  EXPECT_EQ(ledger.counts().undescribed_bytes, 46u);
  ASSERT_EQ(sink.gaps.size(), 5u);
  EXPECT_EQ(sink.gaps[0].cause, AuxGapCause::kNoRecord);
  EXPECT_EQ(sink.gaps[0].offset_bytes, 64u);
  EXPECT_EQ(sink.gaps[0].size_bytes, 36u);
  EXPECT_EQ(sink.gaps[1].cause, AuxGapCause::kTruncated);
  EXPECT_EQ(sink.gaps[1].offset_bytes, 120u);
  EXPECT_EQ(sink.gaps[2].cause, AuxGapCause::kPartial);
  EXPECT_EQ(sink.gaps[3].cause, AuxGapCause::kCollision);
  EXPECT_EQ(sink.gaps[4].offset_bytes, 120u);
  EXPECT_EQ(sink.gaps[4].size_bytes, 10u);
}

}  // namespace
}  // namespace clew::recorder::perf
