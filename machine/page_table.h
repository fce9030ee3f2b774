#ifndef CLEW_MACHINE_PAGE_TABLE_H_
#define CLEW_MACHINE_PAGE_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

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
// a chunk is copied when one side changes it. Chunk after chunk that is mapped
// and zero, with one protection, is a *stretch*, however long (programs reserve
// TiB of which they use little); a chunk of it is made when a page in it
// changes.
//
//   chunk    0       1       2 ... 4,000,000    4,000,001
//          [slots]    -      [  one stretch  ]  [slots]
//
// Invariant: a chunk is in chunks_ or in one of stretches_, or nothing is
// mapped there. Not thread-safe.
class PageTable {
 public:
  static constexpr uint64_t kChunkPages = 512;

  // Returns the slot of a page; nullptr if nothing is mapped there. It holds
  // until the next change.
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

  // Takes what is mapped in the chunks from `first` up to `end` away and
  // returns it.
  PageTable TakeOut(uint64_t first, uint64_t end);
  // Maps what `part` has. REQUIRES: nothing is mapped in these chunks.
  void PutIn(PageTable part);
  // Maps the chunks from `first` up to `end` zero. REQUIRES: nothing is mapped
  // there.
  void PutStretch(uint64_t first, uint64_t end, uint32_t prot);
  // Returns the end of the stretch that `chunk` is in; nullopt: it is in none.
  std::optional<uint64_t> StretchEnd(uint64_t chunk) const;

  // Calls visit(page_number, slot) for each mapped page that is in no stretch,
  // ascending.
  template <class Visit>
  void ForEachPage(Visit visit) const {
    for (const auto& [number, chunk] : chunks_) {
      for (uint64_t i = 0; i < kChunkPages; ++i) {
        const PageSlot& slot = chunk->slots[i];
        if (slot.mapped) {
          visit(number * kChunkPages + i, slot);
        }
      }
    }
  }
  // Calls visit(first_chunk, end_chunk, prot) for each stretch, ascending.
  template <class Visit>
  void ForEachStretch(Visit visit) const {
    for (const auto& [first, stretch] : stretches_) {
      visit(first, stretch.end, stretch.slot.prot);
    }
  }
  bool empty() const { return chunks_.empty() && stretches_.empty(); }

  // Returns the first page at or after `page_number` and before `end` that is
  // mapped and, if that is wanted, has bytes of its own; `end` if there is
  // none.
  uint64_t FirstMapped(uint64_t page_number, uint64_t end,
                       bool with_bytes = false) const;

 private:
  struct Chunk {
    std::array<PageSlot, kChunkPages> slots;
    uint32_t mapped = 0;
  };
  struct Stretch {
    uint64_t end = 0;  // the chunk behind the last one
    PageSlot slot;     // that each page has
  };
  using Stretches = std::map<uint64_t, Stretch>;  // by first chunk

  PageSlot& SlotToChange(uint64_t page_number);
  Chunk& ChunkToChange(uint64_t chunk_number);
  std::shared_ptr<Chunk> NewChunk(uint64_t chunk_number);
  Stretches::const_iterator StretchOf(uint64_t chunk_number) const;
  void SplitStretchAt(uint64_t chunk_number);

  std::map<uint64_t, std::shared_ptr<Chunk>> chunks_;
  Stretches stretches_;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_PAGE_TABLE_H_
