// Goal: decoding goes on at a TIP only where no branch of before is told any
// more, on hardware that defers TIPs, too; and at each such TIP of hardware
// that does not.
// Method: all sequences of some branches and interrupts, as packets of both
// kinds of hardware, with none, PAD or CYC before each. The model of deferring
// is the SDM's, "Deferred TIPs".
#include "decoder/pt/packet_walk.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/digest.h"

namespace clew::decoder {
namespace {

constexpr int kLength = 10;
constexpr int kTntBits = 6;

enum class Event { kBit, kTip, kInterrupt };

// A core that writes packets of `events`, and what it knew of each TIP.
class Core {
 public:
  // `between` stands before each packet.
  explicit Core(bool defers, std::string between = {})
      : defers_(defers), between_(std::move(between)) {
    for (int i = 0; i < 8; ++i) {
      bytes_ += "\x02\x82";
    }
    bytes_ += "\x99\x01";  // MODE.Exec, 64 bits
    Ip(0x7d, 0);           // FUP
    bytes_ += "\x02\x23";  // PSBEND
    begin_ = bytes_.size();
  }

  void Run(Event event) {
    switch (event) {
      case Event::kBit:
        ++branches_;
        ++in_progress_;
        return in_progress_ == kTntBits ? Force() : void();
      case Event::kTip:
        deferred_.push_back(++branches_);
        return defers_ && in_progress_ > 0 ? void() : Force();
      case Event::kInterrupt:
        Force();
        bytes_ += between_;
        Ip(0x7d, branches_);
        bytes_ += between_;
        bytes_ += '\x01';  // TIP.PGD without an address
        bytes_ += between_;
        return Ip(0x71, branches_);  // TIP.PGE
    }
  }

  // All of the TNT in progress, and the TIPs behind it.
  void Force() {
    if (in_progress_ > 0) {
      bytes_ += between_;
      bytes_ += static_cast<char>(2U << in_progress_);
      told_ += in_progress_;
      in_progress_ = 0;
    }
    for (const int branch : deferred_) {
      ++told_;
      bytes_ += between_;
      is_place_[bytes_.size()] = told_ == branch;
      Ip(0x6d, branch);
    }
    deferred_.clear();
  }

  const std::string& bytes() const { return bytes_; }
  uint64_t begin() const { return begin_; }
  // By the offset of each TIP: whether exactly the branches before it, and
  // itself, are told before its end.
  const std::map<uint64_t, bool>& is_place() const { return is_place_; }

 private:
  void Ip(uint8_t header, int branch) {
    const uint64_t ip = 0x400000 + static_cast<uint64_t>(branch);
    bytes_ += static_cast<char>(header);
    bytes_.append(reinterpret_cast<const char*>(&ip), 6);
  }

  const bool defers_;
  const std::string between_;
  std::string bytes_;
  uint64_t begin_ = 0;
  int branches_ = 0;     // that ran
  int told_ = 0;         // of them, by packets
  int in_progress_ = 0;  // bits of a TNT packet
  std::vector<int> deferred_;
  std::map<uint64_t, bool> is_place_;
};

// PAD, CYC with one byte and with two.
const std::string kBetween[] = {"", std::string("\0", 1), "\x0b",
                                std::string("\x0f\x02\0", 3)};

Core RunAll(int sequence, bool defers, const std::string& between) {
  Core core(defers, between);
  for (int i = 0; i < kLength; ++i, sequence /= 3) {
    core.Run(static_cast<Event>(sequence % 3));
  }
  core.Force();
  return core;
}

int Sequences() {
  int count = 1;
  for (int i = 0; i < kLength; ++i) {
    count *= 3;
  }
  return count;
}

std::vector<uint64_t> PlacesInside(const Core& core, bool tips_deferred) {
  const auto& bytes = core.bytes();
  PacketWalk walk(std::as_bytes(std::span(bytes)), tips_deferred);
  std::vector<uint64_t> places;
  for (auto point = walk.Next(core.begin(), true);
       point && point->kind != ResumePoint::Kind::kPsb;
       point = walk.Next(point->end, true)) {
    if (point->kind == ResumePoint::Kind::kInside) {
      places.push_back(point->offset);
    }
  }
  return places;
}

TEST(PacketWalkTest, NoPlaceHasABranchOfBeforeToldBehindIt) {
  uint64_t found = 0;
  for (const std::string& between : kBetween) {
    for (int sequence = 0; sequence < Sequences(); ++sequence) {
      const Core core = RunAll(sequence, /*defers=*/true, between);
      for (const uint64_t offset : PlacesInside(core, true)) {
        ASSERT_TRUE(core.is_place().at(offset)) << "sequence " << sequence;
        ++found;
      }
    }
  }
  EXPECT_GT(found, 0u);
}

TEST(PacketWalkTest, WhereNothingIsDeferredEachTipIsAPlace) {
  uint64_t without = 0;
  for (int sequence = 0; sequence < Sequences(); ++sequence) {
    std::optional<size_t> certain;  // where TIPs may be deferred
    for (const std::string& between : kBetween) {
      const Core core = RunAll(sequence, /*defers=*/false, between);
      std::vector<uint64_t> tips;
      for (const auto& [offset, is_place] : core.is_place()) {
        ASSERT_TRUE(is_place);
        tips.push_back(offset);
      }
      ASSERT_EQ(PlacesInside(core, false), tips) << "sequence " << sequence;
      const size_t places = PlacesInside(core, true).size();
      ASSERT_EQ(places, certain.value_or(places)) << "sequence " << sequence;
      certain = places;
      without += tips.size() - places;
    }
  }
  EXPECT_GT(without, 0u);
}

// The TNT packet before the last one no longer matters, nor that another TIP
// follows.
TEST(PacketWalkTest, OnlyTheTntPacketBeforeTheTipsMatters) {
  Core core(/*defers=*/false);
  for (int i = 0; i < kTntBits + 1; ++i) {
    core.Run(Event::kBit);
  }
  core.Run(Event::kTip);
  core.Run(Event::kTip);
  core.Run(Event::kBit);
  core.Force();
  EXPECT_EQ(PlacesInside(core, true).size(), 2u);
}

// Thousands of branches, with an interrupt each `interval` of them.
Core RunLong(bool defers, uint64_t interval, Random& random) {
  Core core(defers);
  for (int i = 0; i < 5000; ++i) {
    core.Run(random.Below(4) == 0 ? Event::kTip : Event::kBit);
    if (random.Below(interval) == 0) {
      core.Run(Event::kInterrupt);
    }
  }
  core.Force();
  return core;
}

// A long trace shows which kind of core it is of.
TEST(PacketWalkTest, OfACoreThatDoesNotDeferEachTipIsAPlace) {
  const auto seed =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  Random random(seed);
  for (const uint64_t interval : {5u, 20u, 100u, 1000u}) {
    SCOPED_TRACE(fmt::format("seed {} interval {}", seed, interval));
    const Core plain = RunLong(/*defers=*/false, interval, random);
    EXPECT_EQ(PlacesInside(plain, true).size(), plain.is_place().size());
    const Core deferring = RunLong(/*defers=*/true, interval, random);
    for (const uint64_t offset : PlacesInside(deferring, true)) {
      ASSERT_TRUE(deferring.is_place().at(offset));
    }
  }
}

}  // namespace
}  // namespace clew::decoder
