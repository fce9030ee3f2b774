#ifndef CLEW_RECORDER_QEMU_PAGE_CONTENT_H_
#define CLEW_RECORDER_QEMU_PAGE_CONTENT_H_

#include <cstdint>
#include <vector>

#include "common/os/fd.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// Tells pages that are all zero from those that are not. Pages of another
// process which it never touched are not read: an allocator's reserve may have
// millions. Source: linux Documentation/admin-guide/mm/pagemap.rst.
class PageContent {
 public:
  // `memory` has to outlive it.
  explicit PageContent(const GuestMemory& memory);
  // True if the page at `region.addr + at` is readable and not all zero.
  bool Has(const GuestRegion& region, uint64_t at);

 private:
  // Whether the kernel has anything for this page of memory that was zero; true
  // where it does not tell.
  bool IsThere(uint64_t addr);

  const GuestMemory& memory_;
  Fd pagemap_;                   // -1: none is asked
  uint64_t known_page_ = 0;      // that known_ begins with
  std::vector<uint64_t> known_;  // entries of the page map
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PAGE_CONTENT_H_
