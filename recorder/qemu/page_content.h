#ifndef CLEW_RECORDER_QEMU_PAGE_CONTENT_H_
#define CLEW_RECORDER_QEMU_PAGE_CONTENT_H_

#include <cstdint>
#include <vector>

#include "common/linux/syscall_reads.h"
#include "common/os/fd.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// Finds the pages of a region that are not all zero. Regions may have terabytes
// (AddressSanitizer's shadow, the heap of a JVM, the map of a sparse file), so
// what is not there is passed over, not looked at page by page:
// - of private memory of another process that was zero when it was mapped, what
//   the process never touched. Source: linux
//   Documentation/admin-guide/mm/pagemap.rst, PAGEMAP_SCAN (since 6.7), or else
//   an entry for each page, some 5 ns;
// - of a mapped file, what lies behind its end.
// Offsets are in bytes from the region's begin, multiples of kPageBytes; "at"
// the region's size: there is none.
class PageContent {
 public:
  enum class Method : uint8_t {
    kScan,     // by entry where the kernel has no PAGEMAP_SCAN
    kByEntry,  // of the page map
  };
  // `memory` has to outlive it.
  explicit PageContent(const GuestMemory& memory,
                       Method method = Method::kScan);
  // Whether the page at `at` is readable and not all zero.
  bool Has(const GuestRegion& region, uint64_t at);
  // Returns the first such page at `from` or behind it.
  uint64_t Next(const GuestRegion& region, uint64_t from);
  // Returns the first page at `from` or behind it that is there, or, second,
  // that is not; all are, where nothing is known.
  uint64_t NextThere(const GuestRegion& region, uint64_t from);
  uint64_t NextAbsent(const GuestRegion& region, uint64_t from);

 private:
  void Learn(const GuestRegion& region, uint64_t addr);
  void ScanFrom(uint64_t addr, uint64_t end);
  void ReadEntriesFrom(uint64_t addr, uint64_t end);
  uint64_t BytesOfFile(const GuestRegion& region) const;
  const MemoryRange* KnownAt(const GuestRegion& region, uint64_t addr);

  const GuestMemory& memory_;
  Fd pagemap_;  // -1: none is asked
  Method method_;
  // What is known: of the addresses from known_begin_ to known_end_, those in
  // there_ are there; by address, apart from each other.
  uint64_t known_begin_ = 0;
  uint64_t known_end_ = 0;
  std::vector<MemoryRange> there_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PAGE_CONTENT_H_
