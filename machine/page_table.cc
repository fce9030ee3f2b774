#include "machine/page_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/check.h"

namespace clew::machine {
namespace {

// Moves what `from` has in [first, end) to `to`.
template <class Map>
void MoveRange(Map& from, uint64_t first, uint64_t end, Map& to) {
  auto it = from.lower_bound(first);
  while (it != from.end() && it->first < end) {
    to.insert(from.extract(it++));
  }
}

}  // namespace

const std::byte* ZeroPage() {
  static const Page zeros = {};
  return zeros.bytes.data();
}

const PageSlot* PageTable::Find(uint64_t page_number) const {
  const auto it = chunks_.find(page_number / kChunkPages);
  if (it == chunks_.end()) {
    const auto stretch = StretchOf(page_number / kChunkPages);
    return stretch == stretches_.end() ? nullptr : &stretch->second.slot;
  }
  const PageSlot& slot = it->second->slots[page_number % kChunkPages];
  return slot.mapped ? &slot : nullptr;
}

PageTable::Stretches::const_iterator PageTable::StretchOf(
    uint64_t chunk_number) const {
  const auto after = stretches_.upper_bound(chunk_number);
  if (after == stretches_.begin()) {
    return stretches_.end();
  }
  const auto it = std::prev(after);
  return chunk_number < it->second.end ? it : stretches_.end();
}

std::optional<uint64_t> PageTable::StretchEnd(uint64_t chunk) const {
  const auto it = StretchOf(chunk);
  return it == stretches_.end() ? std::nullopt : std::optional(it->second.end);
}

// Lets no stretch reach over the beginning of the chunk.
void PageTable::SplitStretchAt(uint64_t chunk_number) {
  const auto it = StretchOf(chunk_number);
  if (it == stretches_.end() || it->first == chunk_number) {
    return;
  }
  Stretch& before = stretches_[it->first];
  stretches_[chunk_number] = before;
  before.end = chunk_number;
}

// Of a chunk that is not in chunks_: what the stretch has that it is in.
std::shared_ptr<PageTable::Chunk> PageTable::NewChunk(uint64_t chunk_number) {
  auto chunk = std::make_shared<Chunk>();
  if (StretchOf(chunk_number) != stretches_.end()) {
    SplitStretchAt(chunk_number);
    SplitStretchAt(chunk_number + 1);
    chunk->slots.fill(stretches_[chunk_number].slot);
    chunk->mapped = kChunkPages;
    stretches_.erase(chunk_number);
  }
  return chunk;
}

PageTable::Chunk& PageTable::ChunkToChange(uint64_t chunk_number) {
  std::shared_ptr<Chunk>& chunk = chunks_[chunk_number];
  if (chunk == nullptr) {
    chunk = NewChunk(chunk_number);
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

PageTable PageTable::TakeOut(uint64_t first, uint64_t end) {
  SplitStretchAt(first);
  SplitStretchAt(end);
  PageTable part;
  MoveRange(chunks_, first, end, part.chunks_);
  MoveRange(stretches_, first, end, part.stretches_);
  return part;
}

void PageTable::PutIn(PageTable part) {
  chunks_.merge(part.chunks_);
  stretches_.merge(part.stretches_);
}

void PageTable::PutStretch(uint64_t first, uint64_t end, uint32_t prot) {
  stretches_[first] = {.end = end,
                       .slot = {.page = nullptr, .prot = prot, .mapped = true}};
}

uint64_t PageTable::FirstMapped(uint64_t page_number, uint64_t end,
                                bool with_bytes) const {
  const uint64_t chunk_number = page_number / kChunkPages;
  if (!with_bytes) {
    if (StretchOf(chunk_number) != stretches_.end()) {
      return std::min(page_number, end);
    }
    const auto stretch = stretches_.upper_bound(chunk_number);
    if (stretch != stretches_.end()) {
      end = std::min(end, stretch->first * kChunkPages);
    }
  }
  auto it = chunks_.lower_bound(chunk_number);
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
