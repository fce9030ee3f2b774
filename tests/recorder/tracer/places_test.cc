// Goal: the runtime's places in a process overlap nothing, and a cache reaches
// the code that it is for, wherever that lies.
// Method: the shapes that processes have, and random ones with a printed seed.

#include "recorder/tracer/places.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "recorder/tracer/image.h"

namespace clew::tracer {
namespace {

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
};

std::string Maps(const std::vector<Range>& ranges) {
  std::string text;
  for (const Range& range : ranges) {
    text += fmt::format("{:x}-{:x} r-xp 00000000 fe:00 42   /usr/bin/a-b c\n",
                        range.begin, range.end);
  }
  return text;
}

constexpr Range kStack = {0x7ffffffde000, 0x7ffffffff000};
constexpr Range kVsyscall = {0xffffffffff600000, 0xffffffffff601000};

std::vector<Range> RangesOf(const Places& places) {
  std::vector<Range> ranges = {
      {places.shared, places.shared + kSharedBytes},
      {places.image, places.image + RuntimeImage().size()},
      {places.runtime, places.runtime + kRuntimeBytes},
      {places.threads, places.threads + kThreadsMax * kThreadBytes}};
  for (const uint64_t cache : places.caches) {
    if (cache != 0) {
      ranges.push_back({cache, cache + kCacheBytes});
    }
  }
  return ranges;
}

void ExpectApart(const Places& places, std::vector<Range> mapped) {
  std::ranges::copy(RangesOf(places), std::back_inserter(mapped));
  std::ranges::sort(mapped, {}, &Range::begin);
  for (size_t i = 1; i < mapped.size(); ++i) {
    EXPECT_LE(mapped[i - 1].end, mapped[i].begin)
        << fmt::format("{:x} {:x}", mapped[i - 1].begin, mapped[i].begin);
  }
  for (const Range& range : RangesOf(places)) {
    EXPECT_EQ(range.begin % 4096, 0);
    EXPECT_LE(range.end, uint64_t{1} << 47);
  }
}

bool Reaches(uint64_t cache, uint64_t addr) {
  const uint64_t end = cache + kCacheBytes;
  constexpr uint64_t kReach = 1ull << 31;
  return cache != 0 && std::max(end, addr) - std::min(cache, addr) < kReach;
}

void ExpectReach(const Places& places, uint64_t addr) {
  EXPECT_TRUE(Reaches(places.caches[0], addr) ||
              Reaches(places.caches[1], addr))
      << fmt::format("{:x}", addr);
}

TEST(PlacesTest, PositionIndependentProgramHasTwoCaches) {
  const std::vector<Range> mapped = {{0x555555554000, 0x55555555a000},
                                     {0x7ffff7fc9000, 0x7ffff7fff000},
                                     kStack,
                                     kVsyscall};
  const auto places =
      ChoosePlaces(Maps(mapped), 0x7ffff7fe4000, 0x555555556000);
  ASSERT_TRUE(places.has_value());
  ExpectApart(*places, mapped);
  ExpectReach(*places, 0x555555556000);
  ExpectReach(*places, 0x7ffff7fe4000);
  // What the program maps comes below its libraries, and its heap behind it.
  constexpr uint64_t kRoom = 1000 << 20;
  for (const Range& range : RangesOf(*places)) {
    EXPECT_FALSE(range.begin < 0x7ffff7fc9000 &&
                 range.end > 0x7ffff7fc9000 - kRoom);
    EXPECT_FALSE(range.begin < 0x555555554000 + (1ull << 32) &&
                 range.end > 0x555555554000);
  }
}

TEST(PlacesTest, LowStaticProgramHasOneCacheAboveItsHeap) {
  const std::vector<Range> mapped = {{0x400000, 0x4c0000}, kStack, kVsyscall};
  const auto places = ChoosePlaces(Maps(mapped), 0x401000, 0x401000);
  ASSERT_TRUE(places.has_value());
  ExpectApart(*places, mapped);
  ExpectReach(*places, 0x401000);
  EXPECT_GT(places->caches[0], uint64_t{1} << 30);
  EXPECT_EQ(places->caches[1], 0);
}

TEST(PlacesTest, NoRoomNearbyTakesAFarCache) {
  const std::vector<Range> mapped = {
      {0x100000000, 0x300000000}, kStack, kVsyscall};
  const auto places = ChoosePlaces(Maps(mapped), 0x200000000, 0x200000000);
  ASSERT_TRUE(places.has_value());
  ExpectApart(*places, mapped);
  EXPECT_NE(places->caches[0], 0);
}

TEST(PlacesTest, NoRoomAtAllIsSaid) {
  const auto places =
      ChoosePlaces(Maps({{0x10000, 0x7ffffffff000}}), 0x20000, 0x20000);
  ASSERT_FALSE(places.has_value());
  EXPECT_EQ(places.error().code, ErrorCode::kLimit);
}

TEST(PlacesTest, RandomMapsAreLeftAlone) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    std::vector<Range> mapped;
    for (uint64_t at = 0x10000; at < kStack.begin;) {
      const uint64_t bytes = (1 + random() % (1ull << random() % 24)) * 4096;
      if (at + bytes > kStack.begin) {
        break;
      }
      mapped.push_back({at, at + bytes});
      at += bytes + random() % (1ull << (12 + random() % 34)) / 4096 * 4096;
    }
    const uint64_t ip = mapped[random() % mapped.size()].begin;
    const uint64_t program = mapped[random() % mapped.size()].begin;
    mapped.push_back(kStack);
    const auto places = ChoosePlaces(Maps(mapped), ip, program);
    if (places) {
      ExpectApart(*places, mapped);
    } else {
      EXPECT_EQ(places.error().code, ErrorCode::kLimit);
    }
  }
}

}  // namespace
}  // namespace clew::tracer
