#include "recorder/tracer/places.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "common/text/parse_number.h"
#include "common/x86/page.h"
#include "recorder/tracer/image.h"

namespace clew::tracer {
namespace {

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// A displacement of 32 bits, less what the code around an address may have.
constexpr uint64_t kReach = (2ull << 30) - (256ull << 20);
// What the program may map below its libraries before it meets the cache.
constexpr uint64_t kRoomBelowLibraries = 1ull << 30;
// Below everything, of which the stack is the highest: so much that the
// kernel's own places of mappings (up to 16 GiB below the stack, mm/util.c,
// mmap_base) are not in the way.
constexpr uint64_t kRoomBelowAll = 32ull << 30;
// Below a program's file, where nothing grows.
constexpr uint64_t kRoomBelowProgram = 16ull << 20;
// vm.mmap_min_addr at most, and what a pointer that is nearly null may reach.
constexpr uint64_t kLowest = 1 << 20;
// Source: x86-64 kernel, Documentation/arch/x86/x86_64/mm.rst, user space.
constexpr uint64_t kHighest = (1ull << 47) - kPageBytes;

std::vector<Range> MappedRanges(std::string_view maps) {
  std::vector<Range> ranges;
  while (!maps.empty()) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(maps.size(), line.size() + 1));
    const size_t dash = line.find('-');
    const size_t space = line.find(' ');
    if (dash > space || space == line.npos) {
      continue;
    }
    const auto begin = ParseNumber<uint64_t>(line.substr(0, dash), 16);
    const auto end =
        ParseNumber<uint64_t>(line.substr(dash + 1, space - dash - 1), 16);
    if (begin && end) {
      ranges.push_back({*begin, *end});
    }
  }
  return ranges;
}

// Where those that are the program's own end: the last one may be of the
// kernel.
uint64_t UserMappingsEnd(const std::vector<Range>& mapped) {
  uint64_t end = kLowest;
  for (const Range& range : mapped) {
    end = range.end <= kHighest + kPageBytes ? range.end : end;
  }
  return end;
}

// The gaps between them, from low to high.
std::vector<Range> Gaps(const std::vector<Range>& mapped) {
  std::vector<Range> gaps;
  uint64_t begin = kLowest;
  for (const Range& range : mapped) {
    if (range.begin > begin) {
      gaps.push_back({begin, std::min(range.begin, kHighest)});
    }
    begin = std::max(begin, range.end);
  }
  if (begin < kHighest) {
    gaps.push_back({begin, kHighest});
  }
  return gaps;
}

// The highest place for `bytes` that ends at `below` at most.
std::optional<uint64_t> HighestBelow(const std::vector<Range>& gaps,
                                     uint64_t below, uint64_t bytes) {
  for (auto gap = gaps.rbegin(); gap != gaps.rend(); ++gap) {
    const uint64_t end = std::min(gap->end, below);
    if (end > gap->begin && end - gap->begin >= bytes) {
      return (end - bytes) & ~(kPageBytes - 1);
    }
  }
  return std::nullopt;
}

// A place for a cache of the code at `addr`: below it, or as far above as it
// reaches, so that a heap may grow up to there.
std::optional<uint64_t> NearPlace(const std::vector<Range>& gaps, uint64_t addr,
                                  uint64_t room) {
  const auto below =
      addr > room ? HighestBelow(gaps, addr - room, kCacheBytes) : std::nullopt;
  if (below && addr - *below <= kReach) {
    return below;
  }
  const auto above =
      HighestBelow(gaps, std::min(addr + kReach, kHighest), kCacheBytes);
  return above && *above > addr ? above : std::nullopt;
}

}  // namespace

Result<Places> ChoosePlaces(std::string_view maps, uint64_t libraries,
                            uint64_t program) {
  std::vector<Range> taken = MappedRanges(maps);
  const uint64_t top = UserMappingsEnd(taken);
  std::vector<uint64_t> caches;
  const auto add_cache = [&](uint64_t addr, uint64_t room) {
    if (const auto cache = NearPlace(Gaps(taken), addr, room)) {
      caches.push_back(*cache);
      taken.push_back({*cache, *cache + kCacheBytes});
      std::ranges::sort(taken, {}, &Range::begin);
    }
  };
  add_cache(program, kRoomBelowProgram);
  if (std::max(libraries, program) - std::min(libraries, program) >= kReach) {
    add_cache(libraries, kRoomBelowLibraries);
  }
  const uint64_t bytes = RoundUpToPage(kSharedBytes) +
                         RoundUpToPage(RuntimeImage().size()) + kRuntimeBytes +
                         kThreadsMax * kThreadBytes + kCacheBytes;
  const auto rest = HighestBelow(
      Gaps(taken), top > kRoomBelowAll ? top - kRoomBelowAll : top, bytes);
  if (!rest) {
    return LimitReached(
        "the program's memory has no gap of {} bytes for the tracer", bytes);
  }
  uint64_t at = *rest;
  const auto take = [&at](uint64_t size) {
    const uint64_t begin = at;
    at += RoundUpToPage(size);
    return begin;
  };
  Places places;
  places.shared = take(kSharedBytes);
  places.image = take(RuntimeImage().size());
  places.image_bytes = RuntimeImage().size();
  places.runtime = take(kRuntimeBytes);
  places.threads = take(kThreadsMax * kThreadBytes);
  if (caches.empty()) {
    caches.push_back(take(kCacheBytes));
  }
  std::ranges::copy(caches, places.caches.begin());
  return places;
}

std::vector<MemoryRange> MemoryOf(const Places& places) {
  std::vector<MemoryRange> ranges = {
      {places.shared, kSharedBytes},
      {places.image, places.image_bytes},
      {places.runtime, kRuntimeBytes},
      {places.threads, kThreadsMax * kThreadBytes}};
  for (const uint64_t cache : places.caches) {
    if (cache != 0) {
      ranges.push_back({cache, kCacheBytes});
    }
  }
  return ranges;
}

}  // namespace clew::tracer
