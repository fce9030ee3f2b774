#include "recorder/qemu/page_content.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace clew::recorder {
namespace {

constexpr uint64_t kEntriesAtOnce = 8192;
constexpr size_t kRangesAtOnce = 512;
constexpr uint64_t kPresentOrSwapped = uint64_t{3} << 62;

// Source: linux include/uapi/linux/fs.h, struct page_region, struct
// pm_scan_arg, PAGEMAP_SCAN, PAGE_IS_PRESENT, PAGE_IS_SWAPPED.
struct PageRegion {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t categories = 0;
};
struct PagemapScan {
  uint64_t size = sizeof(PagemapScan);
  uint64_t flags = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t walk_end = 0;  // set by the kernel: how far it came
  uint64_t vec = 0;
  uint64_t vec_len = 0;
  uint64_t max_pages = 0;
  uint64_t category_inverted = 0;
  uint64_t category_mask = 0;
  uint64_t category_anyof_mask = 0;
  uint64_t return_mask = 0;
};
constexpr uint64_t kPageIsPresent = 1 << 3;
constexpr uint64_t kPageIsSwapped = 1 << 4;
constexpr unsigned long kPagemapScan = _IOWR('f', 16, PagemapScan);

Fd OpenPagemap(int32_t process) {
  return Fd(process == 0
                ? -1
                : open(fmt::format("/proc/{}/pagemap", process).c_str(),
                       O_RDONLY | O_CLOEXEC));
}

// Each byte is 0 as the one before it is: memcmp takes many at a time.
bool IsZero(const std::array<char, kPageBytes>& page) {
  return page[0] == 0 &&
         std::memcmp(page.data(), &page[1], page.size() - 1) == 0;
}

bool IsOfFile(const GuestRegion& region) {
  return region.name.starts_with('/');
}

uint64_t EndOf(const MemoryRange& range) {
  return range.addr + range.size_bytes;
}

void AddTo(std::vector<MemoryRange>& ranges, uint64_t begin, uint64_t end) {
  if (!ranges.empty() && EndOf(ranges.back()) == begin) {
    ranges.back().size_bytes += end - begin;
  } else {
    ranges.push_back({begin, end - begin});
  }
}

}  // namespace

PageContent::PageContent(const GuestMemory& memory, Method method)
    : memory_(memory),
      pagemap_(OpenPagemap(memory.process())),
      method_(method) {}

bool PageContent::Has(const GuestRegion& region, uint64_t at) {
  if (NextThere(region, at) != at) {
    return false;
  }
  std::array<char, kPageBytes> page;
  return memory_.Read(region.addr + at, page.data(), page.size()) &&
         !IsZero(page);
}

uint64_t PageContent::Next(const GuestRegion& region, uint64_t from) {
  uint64_t at = NextThere(region, from);
  while (at < region.size_bytes && !Has(region, at)) {
    at = NextThere(region, at + kPageBytes);
  }
  return at;
}

uint64_t PageContent::NextThere(const GuestRegion& region, uint64_t from) {
  const uint64_t end = region.addr + region.size_bytes;
  uint64_t addr = region.addr + from;
  while (addr < end) {
    if (const MemoryRange* next = KnownAt(region, addr)) {
      return std::min(std::max(next->addr, addr), end) - region.addr;
    }
    addr = known_end_;
  }
  return region.size_bytes;
}

uint64_t PageContent::NextAbsent(const GuestRegion& region, uint64_t from) {
  const uint64_t end = region.addr + region.size_bytes;
  uint64_t addr = region.addr + from;
  while (addr < end) {
    const MemoryRange* next = KnownAt(region, addr);
    if (next == nullptr || next->addr > addr) {
      return addr - region.addr;
    }
    addr = EndOf(*next);  // where this may be all that is known
  }
  return region.size_bytes;
}

// Returns the first range with something at `addr` or behind it, of as much as
// is known at once; null: there is none.
const MemoryRange* PageContent::KnownAt(const GuestRegion& region,
                                        uint64_t addr) {
  if (addr < known_begin_ || addr >= known_end_) {
    Learn(region, addr);
  }
  const auto next = std::ranges::upper_bound(there_, addr, {}, EndOf);
  return next == there_.end() ? nullptr : &*next;
}

void PageContent::Learn(const GuestRegion& region, uint64_t addr) {
  const uint64_t end = region.addr + region.size_bytes;
  there_.clear();
  if (region.was_zero && pagemap_.get() >= 0) {
    known_begin_ = addr;
    ScanFrom(addr, end);
    return;
  }
  known_begin_ = region.addr;
  known_end_ = end;
  const uint64_t bytes =
      IsOfFile(region) ? BytesOfFile(region) : region.size_bytes;
  if (bytes > 0) {
    there_.push_back({region.addr, bytes});
  }
}

void PageContent::ScanFrom(uint64_t addr, uint64_t end) {
  if (method_ == Method::kScan) {
    std::array<PageRegion, kRangesAtOnce> found;
    PagemapScan scan;
    scan.start = addr;
    scan.end = end;
    scan.vec = reinterpret_cast<uint64_t>(found.data());
    scan.vec_len = found.size();
    scan.category_anyof_mask = kPageIsPresent | kPageIsSwapped;
    scan.return_mask = scan.category_anyof_mask;
    const int count = ioctl(pagemap_.get(), kPagemapScan, &scan);
    if (count >= 0 && scan.walk_end > addr) {
      for (const PageRegion& range :
           std::span(found).first(static_cast<size_t>(count))) {
        AddTo(there_, range.start, range.end);
      }
      known_end_ = scan.walk_end;
      return;
    }
    method_ = Method::kByEntry;
  }
  ReadEntriesFrom(addr, end);
}

// Up to the first pages that are there, and some more.
void PageContent::ReadEntriesFrom(uint64_t addr, uint64_t end) {
  std::vector<uint64_t> entries(kEntriesAtOnce);
  known_end_ = addr;
  while (known_end_ < end && there_.empty()) {
    const uint64_t wanted =
        std::min(kEntriesAtOnce, (end - known_end_) / kPageBytes);
    const ssize_t bytes =
        pread(pagemap_.get(), entries.data(), wanted * sizeof(uint64_t),
              static_cast<off_t>(known_end_ / kPageBytes * sizeof(uint64_t)));
    if (bytes < static_cast<ssize_t>(sizeof(uint64_t))) {
      AddTo(there_, known_end_, end);  // nothing is known
      known_end_ = end;
      return;
    }
    const auto told =
        std::span(entries).first(static_cast<size_t>(bytes) / sizeof(uint64_t));
    uint64_t any = 0;
    for (const uint64_t entry : told) {
      any |= entry;
    }
    if ((any & kPresentOrSwapped) != 0) {
      for (size_t i = 0; i < told.size(); ++i) {
        if ((told[i] & kPresentOrSwapped) != 0) {
          const uint64_t page = known_end_ + i * kPageBytes;
          AddTo(there_, page, page + kPageBytes);
        }
      }
    }
    known_end_ += told.size() * kPageBytes;
  }
}

// The readable ones: those before the file's end, in whole pages.
uint64_t PageContent::BytesOfFile(const GuestRegion& region) const {
  uint64_t low = 0;
  uint64_t high = region.size_bytes / kPageBytes;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    char byte = 0;
    if (memory_.Read(region.addr + middle * kPageBytes, &byte, 1)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low * kPageBytes;
}

}  // namespace clew::recorder
