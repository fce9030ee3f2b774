// Goal: whatever sizes, wraps, full rings, truncations and pauses there are,
// each record and each trace byte that the kernel's side produced is delivered
// once, in order and unchanged, or is counted as lost at the place where it is
// missing.
// Method: property; a writer thread that follows the kernel's protocol
// (fake_ring.h) and a reader run at once on rings of random sizes; a million
// records in all, or CLEW_RING_RECORDS. Every record carries its number.
// Oracle: what the writer counted. CLEW_SEED (1) chooses sizes; who is ahead is
// the machine's choice.
//
// For data races, as `tools/test --thread` does: build with
// -DCLEW_SANITIZE=thread and run this program.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "recorder/perf/aux_ledger.h"
#include "recorder/perf/aux_ring.h"
#include "recorder/perf/data_ring.h"
#include "recorder/perf/events.h"
#include "tests/recorder/perf/fake_ring.h"

namespace clew::recorder::perf {
namespace {

using Random = std::mt19937_64;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

uint64_t Seed() {
  static const uint64_t seed = FromEnvironment("CLEW_SEED", 1);
  return seed;
}

// Rings of different sizes per test: in each round about twice as large as in
// the one before. In small ones writer and reader wait for each other all the
// time, so these get few of the records.
constexpr unsigned kRounds = 10;
constexpr unsigned kSmallRounds = 3;
constexpr uint64_t kSmallPercent = 1;

// Of all records the share of a test, and of that the share of a round.
uint64_t Records(uint64_t percent, unsigned round) {
  constexpr uint64_t kLargeRounds = kRounds - kSmallRounds;
  constexpr uint64_t kLargePercent = 100 - kSmallRounds * kSmallPercent;
  const uint64_t all =
      FromEnvironment("CLEW_RING_RECORDS", 1'000'000) * percent / 100;
  return round < kSmallRounds
             ? all * kSmallPercent / 100
             : (all * kLargePercent / 100 + kLargeRounds - 1) / kLargeRounds;
}

uint64_t Below(Random& random, uint64_t bound) { return random() % bound; }

// The numbers that follow from a record's own number, so that any byte out of
// place shows.
uint64_t Word(uint64_t number, size_t i) {
  return (number + i) * 0x9e3779b97f4a7c15u;
}

// Bodies of 0 to 30 words, seldom some thousand.
size_t RandomWords(Random& random, size_t ring_bytes) {
  const uint64_t choice = Below(random, 1000);
  const size_t most = std::min<size_t>(ring_bytes / 16, 8000);
  return choice == 0 ? Below(random, most) : choice % 30 % most;
}

// The writer: `records` of random sizes, each tried once; where the ring is
// full it mostly waits a little first.
class Writer {
 public:
  Writer(FakeRing& ring, uint64_t seed, uint64_t records)
      : ring_(ring), random_(seed), records_(records) {}

  void Run() {
    const bool patient = Below(random_, 2) == 0;
    for (uint64_t i = 0; i < records_; ++i) {
      const size_t words = RandomWords(random_, ring_.data_bytes());
      if (mode_waits_ && (patient || Below(random_, 4) != 0)) {
        WaitForRoom(words * 8);
      }
      if (!mode_waits_ && Below(random_, 100) == 0) {
        std::this_thread::yield();
      }
      WriteOne(words);
      if (ring_.aux_bytes() > 0 && Below(random_, 4) == 0) {
        WriteAux();
      }
    }
    done_ = true;
  }
  // The following while the reader is at rest. One record, so that a last LOST
  // gets told.
  void Flush() { WriteOne(1); }
  // Until there was no room, so that this happens however the two met before.
  void Overfill() {
    for (const uint64_t before = ring_.dropped(); ring_.dropped() == before;) {
      WriteOne(1);
    }
  }
  void OverfillAux() { ring_.OutputAux(ring_.aux_bytes() + 1, 0); }
  // More than a ring without a reader holds.
  void GoRound() {
    const uint64_t before = ring_.written_bytes();
    while (ring_.written_bytes() - before < 2 * ring_.data_bytes()) {
      WriteOne(1);
    }
  }
  void DoNotWait() { mode_waits_ = false; }
  bool done() const { return done_; }

 private:
  void WaitForRoom(size_t body_bytes) {
    for (int i = 0; i < kPatience && !ring_.HasRoom(body_bytes); ++i) {
      if (i % kSpins == 0) {
        std::this_thread::yield();
      }
    }
  }
  void WriteOne(size_t words) {
    const uint64_t number = ring_.tried() + 1;
    body_.resize(words);
    for (size_t i = 0; i < words; ++i) {
      body_[i] = Word(number, i);
    }
    (void)ring_.Output(PERF_RECORD_SAMPLE, std::as_bytes(std::span(body_)));
  }
  void WriteAux() {
    const uint64_t choice = Below(random_, 64);
    const uint64_t flags = choice == 0   ? PERF_AUX_FLAG_PARTIAL
                           : choice == 1 ? PERF_AUX_FLAG_COLLISION
                                         : 0;
    const uint64_t most = choice == 2 ? ring_.aux_bytes() : 256;
    ring_.OutputAux(1 + Below(random_, most), flags);
  }

  static constexpr int kPatience = 10'000;  // looks at the tail
  static constexpr int kSpins = 1'000;      // between two yields

  FakeRing& ring_;
  Random random_;
  uint64_t records_;
  bool mode_waits_ = true;
  std::vector<uint64_t> body_;
  std::atomic<bool> done_ = false;
};

// Holds what comes out against the numbering.
class Checker final : public RecordSink, public AuxSink, public AuxGapSink {
 public:
  Status OnRecord(const RecordView& record) override {
    delivered_bytes += record.bytes.size();
    CLEW_ASSIGN_OR_RETURN(event, ParseEvent(record, "test"));
    const uint64_t number = event.id.time.as_int();
    if (const auto* lost = std::get_if<bundle::LostRecord>(&event.body)) {
      lost_records += lost->count;
      lost_since_ += lost->count;
      return {};
    }
    const uint64_t next = last_ + 1 + lost_since_;
    if (number < next || (number > next && !MayJump())) {
      return InvalidArgument("record {} after {}, {} lost between", number,
                             last_, lost_since_);
    }
    overwritten_seen_ = overwritten_ == nullptr ? 0 : *overwritten_;
    lost_since_ = 0;
    last_ = number;
    ++records;
    if (const auto* told = std::get_if<bundle::AuxRecord>(&event.body)) {
      return ledger.OnAuxRecord(*told);
    }
    return CheckBody(record, number);
  }
  Status OnAux(const AuxRingPiece& piece) override {
    if (piece.offset != aux.size()) {
      return InvalidArgument("AUX bytes at {}, wanted {}", piece.offset,
                             aux.size());
    }
    aux.insert(aux.end(), piece.first.begin(), piece.first.end());
    aux.insert(aux.end(), piece.second.begin(), piece.second.end());
    return {};
  }
  void OnGap(const AuxGap& gap) override { gaps.push_back(gap); }

  // Records may be missing where this count of overwritten bytes has grown.
  void WatchOverwritten(const uint64_t* bytes) { overwritten_ = bytes; }

  uint64_t records = 0;
  uint64_t lost_records = 0;
  uint64_t delivered_bytes = 0;
  std::vector<std::byte> aux;
  std::vector<AuxGap> gaps;
  AuxLedger ledger{*this, "test"};

 private:
  bool MayJump() const {
    return overwritten_ != nullptr && *overwritten_ > overwritten_seen_;
  }
  static Status CheckBody(const RecordView& record, uint64_t number) {
    const auto body =
        record.bytes.subspan(sizeof(perf_event_header),
                             record.bytes.size() - sizeof(perf_event_header) -
                                 bundle::kSampleIdBytes);
    for (size_t i = 0; i * 8 < body.size(); ++i) {
      uint64_t word;
      std::memcpy(&word, body.data() + i * 8, 8);
      if (word != Word(number, i)) {
        return InvalidArgument("record {}: word {} is {:#x}", number, i, word);
      }
    }
    return {};
  }

  uint64_t last_ = 0;
  uint64_t lost_since_ = 0;
  const uint64_t* overwritten_ = nullptr;
  uint64_t overwritten_seen_ = 0;
};

// Runs `write` in a thread and `read` here until it is done; `read` is called
// at least once more afterwards. Stops at the first failure.
void RunBoth(Writer& writer, const std::function<void()>& read) {
  std::thread thread([&] { writer.Run(); });
  while (!writer.done()) {
    read();
    if (testing::Test::HasFailure()) {
      break;
    }
  }
  thread.join();
}

size_t RandomSize(Random& random, unsigned log_min, unsigned round) {
  return size_t{1} << (log_min + round + Below(random, 2));
}

// Now and then, so that the ring fills up; the smaller it is the less often.
void MaybeIdle(Random& random, const FakeRing& ring) {
  if (Below(random, 1 << 19) < ring.data_bytes()) {
    std::this_thread::sleep_for(std::chrono::microseconds(Below(random, 500)));
  }
}

struct Totals {
  uint64_t tried = 0, records = 0, lost = 0, overwritten = 0, truncated = 0,
           no_record = 0;
  void Print(const char* what) const {
    std::printf(
        "%s: seed %llu: %llu records tried, %llu delivered, %llu lost, %llu "
        "bytes overwritten, %llu truncations, %llu AUX bytes without record\n",
        what, static_cast<unsigned long long>(Seed()),
        static_cast<unsigned long long>(tried),
        static_cast<unsigned long long>(records),
        static_cast<unsigned long long>(lost),
        static_cast<unsigned long long>(overwritten),
        static_cast<unsigned long long>(truncated),
        static_cast<unsigned long long>(no_record));
  }
};

// Everything that was tried is accounted for, in records and in bytes.
void ExpectAccounted(const FakeRing& fake, const DataRing& ring,
                     const Checker& checker, Totals& totals) {
  const DataRingCounts& counts = ring.counts();
  EXPECT_EQ(fake.untold(), 0u);
  EXPECT_EQ(checker.lost_records, fake.dropped());
  EXPECT_EQ(checker.records + checker.lost_records, fake.tried());
  EXPECT_EQ(checker.delivered_bytes, counts.delivered_bytes);
  EXPECT_EQ(counts.delivered_bytes, fake.written_bytes());
  EXPECT_EQ(counts.skipped_bytes, 0u);
  EXPECT_EQ(counts.overwritten_bytes, 0u);
  totals.tried += fake.tried();
  totals.records += checker.records;
  totals.lost += checker.lost_records;
}

void RunForward(uint64_t seed, unsigned round, uint64_t records,
                Totals& totals) {
  Random random(seed);
  FakeRing fake(RandomSize(random, 9, round), 0, RingMode::kForward);
  auto ring = DataRing::Create(fake.mapping(), RingMode::kForward, "test");
  ASSERT_TRUE(ring) << ring.error().message;
  Writer writer(fake, random(), records);
  Checker checker;
  const auto drain = [&] {
    const Status status = ring->Drain(checker);
    ASSERT_TRUE(status) << status.error().message;
    MaybeIdle(random, fake);
  };
  RunBoth(writer, drain);
  drain();
  writer.Overfill();
  drain();
  writer.Flush();
  drain();
  ExpectAccounted(fake, *ring, checker, totals);
}

TEST(RingPropertyTest, ForwardRingDeliversOrCountsEveryRecord) {
  RecordProperty("seed", std::to_string(Seed()));
  Totals totals;
  for (unsigned i = 0; i < kRounds && !HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message()
                 << "CLEW_SEED=" << Seed() << " round " << i);
    RunForward(Seed() + i, i, Records(50, i), totals);
  }
  totals.Print("forward");
  EXPECT_GT(totals.records, 0u);
  EXPECT_GT(totals.lost, 0u) << "the ring was never full";
}

// The bytes that came out are those that were traced, with exactly the missing
// stretches cut out, and each cut or undescribed stretch is a gap.
void ExpectAuxAccounted(const FakeRing& fake, const Checker& checker,
                        Totals& totals) {
  ASSERT_EQ(checker.aux.size(), fake.aux_written_bytes());
  uint64_t missing = 0;
  size_t next = 0;
  for (uint64_t i = 0; i < checker.aux.size(); ++i) {
    while (next < fake.aux_missing().size() &&
           fake.aux_missing()[next].offset == i) {
      missing += fake.aux_missing()[next++].bytes;
    }
    ASSERT_EQ(checker.aux[i], FakeRing::AuxByte(i + missing)) << i;
  }
  const AuxCounts& counts = checker.ledger.counts();
  EXPECT_EQ(counts.described_bytes + counts.undescribed_bytes,
            checker.aux.size());
  EXPECT_EQ(counts.undescribed_bytes > 0, fake.aux_record_drops() > 0);
  // Every cut is at a TRUNCATED, or at the end of bytes whose record was lost.
  const auto gap_at = [&](uint64_t offset) {
    return std::ranges::any_of(checker.gaps, [&](const AuxGap& gap) {
      return gap.cause == AuxGapCause::kTruncated
                 ? gap.offset_bytes == offset
                 : gap.cause == AuxGapCause::kNoRecord &&
                       gap.offset_bytes <= offset &&
                       offset <= gap.offset_bytes + gap.size_bytes;
    });
  };
  uint64_t untold = 0;  // of which the one record, of no bytes, was lost
  for (const auto& cut : fake.aux_missing()) {
    untold += gap_at(cut.offset) ? 0 : 1;
  }
  EXPECT_LE(untold, fake.aux_record_drops());
  totals.truncated += counts.truncations;
  totals.no_record += counts.undescribed_bytes;
}

void RunAux(uint64_t seed, unsigned round, uint64_t records, Totals& totals) {
  Random random(seed);
  FakeRing fake(RandomSize(random, 10, round), RandomSize(random, 10, round),
                RingMode::kForward);
  auto data = DataRing::Create(fake.mapping(), RingMode::kForward, "test");
  ASSERT_TRUE(data) << data.error().message;
  auto aux =
      AuxRing::Create(fake.page(), fake.aux_area(), RingMode::kForward, "test");
  ASSERT_TRUE(aux) << aux.error().message;
  Writer writer(fake, random(), records);
  Checker checker;
  const auto drain = [&] {
    Status status = data->Drain(checker);
    ASSERT_TRUE(status) << status.error().message;
    status = aux->Drain(checker);
    ASSERT_TRUE(status) << status.error().message;
    if (!fake.aux_enabled()) {
      fake.EnableAux();
    }
    MaybeIdle(random, fake);
  };
  RunBoth(writer, drain);
  drain();
  writer.OverfillAux();
  drain();
  writer.Flush();
  drain();
  const Status closed = checker.ledger.Close(aux->delivered_bytes());
  ASSERT_TRUE(closed) << closed.error().message;
  ExpectAccounted(fake, *data, checker, totals);
  ExpectAuxAccounted(fake, checker, totals);
}

TEST(RingPropertyTest, AuxBytesAreDeliveredOrAGap) {
  Totals totals;
  for (unsigned i = 0; i < kRounds && !HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message()
                 << "CLEW_SEED=" << Seed() << " round " << i);
    RunAux(Seed() + 100 + i, i, Records(25, i), totals);
  }
  totals.Print("AUX");
  EXPECT_GT(totals.truncated, 0u) << "the AUX ring was never full";
}

void RunOverwrite(uint64_t seed, unsigned round, uint64_t records,
                  Totals& totals) {
  Random random(seed);
  FakeRing fake(RandomSize(random, 9, round), 0, RingMode::kOverwrite);
  auto ring = DataRing::Create(fake.mapping(), RingMode::kOverwrite, "test");
  ASSERT_TRUE(ring) << ring.error().message;
  Writer writer(fake, random(), records);
  writer.DoNotWait();
  Checker checker;
  checker.WatchOverwritten(&ring->counts().overwritten_bytes);
  const auto read = [&] {
    fake.SetPaused(true);
    fake.WaitForWriter();
    const Status status = ring->ReadPaused(checker);
    ASSERT_TRUE(status) << status.error().message;
    fake.SetPaused(false);
    MaybeIdle(random, fake);
  };
  RunBoth(writer, read);
  writer.GoRound();
  // However the two met before: one record falls into a pause.
  fake.SetPaused(true);
  writer.Flush();
  fake.SetPaused(false);
  writer.Flush();
  read();
  const DataRingCounts& counts = ring->counts();
  EXPECT_EQ(counts.delivered_bytes + counts.overwritten_bytes,
            fake.written_bytes());
  EXPECT_EQ(checker.delivered_bytes, counts.delivered_bytes);
  EXPECT_EQ(counts.skipped_bytes, 0u);
  EXPECT_LE(checker.lost_records, fake.dropped());
  totals.tried += fake.tried();
  totals.records += checker.records;
  totals.lost += checker.lost_records;
  totals.overwritten += counts.overwritten_bytes;
}

TEST(RingPropertyTest, OverwrittenRingGivesItsNewestRecordsOnce) {
  Totals totals;
  for (unsigned i = 0; i < kRounds && !HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message()
                 << "CLEW_SEED=" << Seed() << " round " << i);
    RunOverwrite(Seed() + 200 + i, i, Records(25, i), totals);
  }
  totals.Print("overwrite");
  EXPECT_GT(totals.overwritten, 0u) << "the ring never went round";
  EXPECT_GT(totals.lost, 0u) << "the pause was not told";
}

}  // namespace
}  // namespace clew::recorder::perf
