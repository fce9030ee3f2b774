#include "machine/shared_mappings.h"

#include <iterator>
#include <utility>
#include <vector>

#include "common/digest.h"

namespace clew::machine {

SharedMappings::Ranges::const_iterator SharedMappings::RangeAtOrBehind(
    uint64_t page) const {
  const auto behind = ranges_.upper_bound(page);
  if (behind != ranges_.begin() && std::prev(behind)->second.end > page) {
    return std::prev(behind);
  }
  return behind;
}

bool SharedMappings::HasIn(uint64_t first, uint64_t end) const {
  const auto range = RangeAtOrBehind(first);
  return range != ranges_.end() && range->first < end;
}

std::optional<uint64_t> SharedMappings::NumberOf(uint64_t page) const {
  const auto range = RangeAtOrBehind(page);
  return range != ranges_.end() && range->first <= page
             ? std::optional(range->second.number + (page - range->first))
             : std::nullopt;
}

std::optional<uint64_t> SharedMappings::PageWith(uint64_t number) const {
  for (const auto& [first, range] : ranges_) {
    const uint64_t page = first + (number - range.number);
    if (number >= range.number && page < range.end) {
      return page;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> SharedMappings::EndAt(uint64_t page) const {
  const auto range = RangeAtOrBehind(page);
  return range != ranges_.end() && range->first <= page
             ? std::optional(range->second.end)
             : std::nullopt;
}

// Leaves what is before and behind.
void SharedMappings::Cut(uint64_t first, uint64_t end) {
  auto it = RangeAtOrBehind(first);
  while (it != ranges_.end() && it->first < end) {
    const auto [begin, range] = *it;
    it = ranges_.erase(it);
    if (begin < first) {
      ranges_[begin] = {.end = first, .number = range.number};
    }
    if (end < range.end) {
      ranges_[end] = {.end = range.end, .number = range.number + (end - begin)};
    }
  }
}

void SharedMappings::Add(uint64_t first, uint64_t end, uint64_t number) {
  Cut(first, end);
  ranges_[first] = {.end = end, .number = number};
  FindMirrors();
}

void SharedMappings::Remove(uint64_t first, uint64_t end) {
  Cut(first, end);
  FindMirrors();
}

void SharedMappings::Move(uint64_t from, uint64_t to, uint64_t pages) {
  Ranges moved;
  ForEachRange(
      from, from + pages, [&](uint64_t first, uint64_t end, uint64_t number) {
        moved[first - from + to] = {.end = end - from + to, .number = number};
      });
  Cut(from, from + pages);
  Cut(to, to + pages);
  ranges_.merge(moved);
  FindMirrors();
}

void SharedMappings::FindMirrors() {
  std::vector<std::pair<uint64_t, uint64_t>> numbers;  // first, end
  numbers.reserve(ranges_.size());
  for (const auto& [first, range] : ranges_) {
    numbers.emplace_back(range.number, range.number + (range.end - first));
  }
  std::ranges::sort(numbers);
  has_mirrors_ = std::ranges::adjacent_find(
                     numbers, [](const auto& one, const auto& next) {
                       return next.first < one.second;
                     }) != numbers.end();
}

// Ranges that follow on each other count as one.
uint64_t SharedMappings::Digest() const {
  uint64_t digest = 0;
  uint64_t expected = 0;
  uint64_t expected_number = 0;
  for (const auto& [first, range] : ranges_) {
    if (first != expected || range.number != expected_number) {
      digest += MixBits(expected ^ MixBits(expected_number));
      digest += MixBits(first ^ MixBits(range.number));
    }
    expected = range.end;
    expected_number = range.number + (range.end - first);
  }
  return digest + MixBits(expected ^ MixBits(expected_number));
}

}  // namespace clew::machine
