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
  bool operator==(const PageSlot&) const = default;
};

// Returns the bytes that a slot without a page has.
const std::byte* ZeroPage();

// Page numbers to slots. A copy is cheap: it shares chunks of 512 slots, and
// a chunk is copied when one side changes it. Not thread-safe.
class PageTable {
 public:
  // Returns the slot of a page; nullptr if nothing is mapped there.
  const PageSlot* Find(uint64_t page_number) const;

  // Returns the bytes to read. REQUIRES: the slot is mapped.
  static const std::byte* Bytes(const PageSlot& slot) {
    return slot.page ? slot.page->bytes.data() : ZeroPage();
  }
  // Returns the bytes to write, no longer shared with any copy. REQUIRES: the
  // page is mapped.
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

  // Returns the first page at or after `page_number` and before `end` that is
  // mapped and, if that is wanted, has bytes of its own; `end` if there is
  // none.
  uint64_t FirstMapped(uint64_t page_number, uint64_t end,
                       bool with_bytes = false) const;

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
