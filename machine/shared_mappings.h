#ifndef CLEW_MACHINE_SHARED_MAPPINGS_H_
#define CLEW_MACHINE_SHARED_MAPPINGS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

namespace clew::machine {

// Which pages of an address space are one memory: those of a file or a segment
// that is mapped shared at several places (mmap(2), MAP_SHARED).
//
//   page      0x10 0x11 0x12      0x40 0x41
//   number      7    8    9         8    9      0x11 and 0x40 are one memory,
//                                               0x12 and 0x41, too
//
// The pages of one memory are numbered in their order, those of different
// memories apart from each other. The *mirrors* of a page are the others with
// its number. Not thread-safe.
class SharedMappings {
 public:
  // Maps the pages from `first` up to `end` to the numbers from `number` on, in
  // place of what they had.
  void Add(uint64_t first, uint64_t end, uint64_t number);
  void Remove(uint64_t first, uint64_t end);
  // Lets the pages from `to` on have the numbers of those from `from` on, which
  // then have none. REQUIRES: the ranges do not overlap.
  void Move(uint64_t from, uint64_t to, uint64_t pages);

  bool empty() const { return ranges_.empty(); }
  // Returns whether some page from `first` up to `end` has a number.
  bool HasIn(uint64_t first, uint64_t end) const;
  // nullopt: the page has none.
  std::optional<uint64_t> NumberOf(uint64_t page) const;
  // Returns the first page that has a number; nullopt: none has.
  std::optional<uint64_t> PageWith(uint64_t number) const;
  // Returns the page behind the mapping that `page` is in; nullopt: in none.
  std::optional<uint64_t> EndAt(uint64_t page) const;
  // Returns whether some page has a mirror.
  bool has_mirrors() const { return has_mirrors_; }

  // Calls visit(mirror) for each mirror of the page.
  template <class Visit>
  void ForEachMirror(uint64_t page, Visit visit) const {
    const auto number = NumberOf(page);
    if (!number) {
      return;
    }
    for (const auto& [first, range] : ranges_) {
      const uint64_t mirror = first + (*number - range.number);
      if (*number >= range.number && mirror < range.end && mirror != page) {
        visit(mirror);
      }
    }
  }
  // Calls visit(first, end, mirror) for each stretch of pages from `first` up
  // to `end` whose mirrors are those from `mirror` on.
  template <class Visit>
  void ForEachMirroredStretch(uint64_t first, uint64_t end, Visit visit) const {
    ForEachRange(first, end, [&](uint64_t part, uint64_t part_end, uint64_t n) {
      for (const auto& [other, range] : ranges_) {
        const uint64_t from = std::max(n, range.number);
        const uint64_t to =
            std::min(n + (part_end - part), range.number + (range.end - other));
        if (from < to && part + (from - n) != other + (from - range.number)) {
          visit(part + (from - n), part + (to - n),
                other + (from - range.number));
        }
      }
    });
  }

  // Equal for equal mappings, however they were made.
  uint64_t Digest() const;

 private:
  struct Range {
    uint64_t end = 0;     // the page behind the last one
    uint64_t number = 0;  // of the first one
  };
  using Ranges = std::map<uint64_t, Range>;  // by first page

  // Calls visit(first, end, number) for each part of a range that is in
  // [first, end).
  template <class Visit>
  void ForEachRange(uint64_t first, uint64_t end, Visit visit) const {
    for (auto it = RangeAtOrBehind(first);
         it != ranges_.end() && it->first < end; ++it) {
      const uint64_t part = std::max(first, it->first);
      visit(part, std::min(end, it->second.end),
            it->second.number + (part - it->first));
    }
  }
  Ranges::const_iterator RangeAtOrBehind(uint64_t page) const;
  void Cut(uint64_t first, uint64_t end);
  void FindMirrors();

  Ranges ranges_;
  bool has_mirrors_ = false;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_SHARED_MAPPINGS_H_
