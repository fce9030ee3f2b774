#include "machine/page_table.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace clew::machine {

const std::byte* ZeroPage() {
  static const Page zeros = {};
  return zeros.bytes.data();
}

const PageSlot* PageTable::Find(uint64_t page_number) const {
  const auto it = chunks_.find(page_number / kChunkPages);
  if (it == chunks_.end()) {
    return nullptr;
  }
  const PageSlot& slot = it->second->slots[page_number % kChunkPages];
  return slot.mapped ? &slot : nullptr;
}

PageTable::Chunk& PageTable::ChunkToChange(uint64_t chunk_number) {
  std::shared_ptr<Chunk>& chunk = chunks_[chunk_number];
  if (chunk == nullptr) {
    chunk = std::make_shared<Chunk>();
  } else if (chunk.use_count() > 1) {
    chunk = std::make_shared<Chunk>(*chunk);
  }
  return *chunk;
}

PageSlot& PageTable::SlotToChange(uint64_t page_number) {
  return ChunkToChange(page_number / kChunkPages)
      .slots[page_number % kChunkPages];
}

std::byte* PageTable::WritableBytes(uint64_t page_number) {
  PageSlot& slot = SlotToChange(page_number);
  CLEW_CHECK(slot.mapped, "page {:#x} is not mapped", page_number);
  if (slot.page == nullptr) {
    slot.page = std::make_shared<Page>();
  } else if (slot.page.use_count() > 1) {
    slot.page = std::make_shared<Page>(*slot.page);
  }
  return slot.page->bytes.data();
}

PageSlot PageTable::Replace(uint64_t page_number, PageSlot slot) {
  const uint64_t number = page_number / kChunkPages;
  Chunk& chunk = ChunkToChange(number);
  PageSlot& place = chunk.slots[page_number % kChunkPages];
  chunk.mapped += (slot.mapped ? 1u : 0u) - (place.mapped ? 1u : 0u);
  PageSlot old = std::exchange(place, std::move(slot));
  if (chunk.mapped == 0) {
    chunks_.erase(number);
  }
  return old;
}

uint64_t PageTable::FirstMapped(uint64_t page_number, uint64_t end,
                                bool with_bytes) const {
  auto it = chunks_.lower_bound(page_number / kChunkPages);
  for (; it != chunks_.end() && it->first * kChunkPages < end; ++it) {
    const uint64_t first = it->first * kChunkPages;
    const uint64_t last = std::min(end, first + kChunkPages);
    for (uint64_t page = std::max(first, page_number); page < last; ++page) {
      const PageSlot& slot = it->second->slots[page - first];
      if (slot.mapped && (slot.page != nullptr || !with_bytes)) {
        return page;
      }
    }
  }
  return end;
}

}  // namespace clew::machine
