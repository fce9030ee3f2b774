#ifndef CLEW_MACHINE_PAGE_TABLE_H_
#define CLEW_MACHINE_PAGE_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "common/x86/page.h"

namespace clew::machine {

inline constexpr unsigned kPageShift = 12;

struct Page {
  std::array<std::byte, kPageBytes> bytes;
};

// One mapped page. Pages are shared_ptr because snapshots share them; whoever
// writes first makes a copy (use_count tells).
struct PageSlot {
  std::shared_ptr<Page> page;  // nullptr: all zero, nothing allocated yet
  uint32_t prot = 0;
  bool mapped = false;
};

// The bytes that a slot without a page has.
const std::byte* ZeroPage();

// Page numbers to slots. A copy is cheap: it shares chunks of 512 slots, and
// a chunk is copied when one side changes it. Not thread-safe.
class PageTable {
 public:
  // nullptr where nothing is mapped.
  const PageSlot* Find(uint64_t page_number) const;

  // Bytes to read. REQUIRES: mapped.
  static const std::byte* Bytes(const PageSlot& slot) {
    return slot.page ? slot.page->bytes.data() : ZeroPage();
  }
  // Bytes to write, no longer shared with any copy. REQUIRES: mapped.
  std::byte* WritableBytes(uint64_t page_number);

  // Replaces a slot; a slot that is not mapped removes it. Returns the old one.
  PageSlot Replace(uint64_t page_number, PageSlot slot);

  // Calls visit(page_number, slot) for each mapped page, ascending.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (const auto& [number, chunk] : chunks_) {
      for (uint64_t i = 0; i < kChunkPages; ++i) {
        const PageSlot& slot = chunk->slots[i];
        if (slot.mapped) {
          visit(number * kChunkPages + i, slot);
        }
      }
    }
  }

  // The first mapped page at or after `page_number` and before `end`, or `end`.
  uint64_t FirstMapped(uint64_t page_number, uint64_t end) const;

 private:
  static constexpr uint64_t kChunkPages = 512;
  struct Chunk {
    std::array<PageSlot, kChunkPages> slots;
    uint32_t mapped = 0;
  };
  PageSlot& SlotToChange(uint64_t page_number);
  Chunk& ChunkToChange(uint64_t chunk_number);

  std::map<uint64_t, std::shared_ptr<Chunk>> chunks_;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_PAGE_TABLE_H_
