#include "decoder/item_queue.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace clew::decoder {

// Most slices are short, so the first chunks are small.
void ItemQueue::AddChunk() {
  constexpr size_t kEntriesAtFirst = 32;
  constexpr size_t kEntriesMax = 4096;
  capacity_ = std::clamp(2 * capacity_, kEntriesAtFirst, kEntriesMax);
  auto entries = std::make_unique_for_overwrite<Entry[]>(capacity_);
  Entry* const begin = entries.get();
  if (empty()) {
    chunks_.clear();
    last_ = chunks_.before_begin();
    first_ = begin;
    read_ = begin;
    chunk_end_ = nullptr;
  } else {
    last_->end = written_;
    chunk_end_ = chunks_.front().end;
  }
  last_ = chunks_.insert_after(last_, Chunk{std::move(entries)});
  written_ = begin;
  end_ = begin + capacity_;
}

// The first chunk is read and is not the last one.
void ItemQueue::NextChunk() {
  chunks_.pop_front();
  first_ = chunks_.front().entries.get();
  read_ = first_;
  chunk_end_ = chunks_.front().end;
}

void ItemQueue::Push(Gap gap) {
  if (gaps_ == nullptr) {
    gaps_ = std::make_unique<std::deque<Gap>>();
  }
  gaps_->push_back(std::move(gap));
  if (Room() == 0) {
    AddChunk();
  }
  Append(Kind::kGap, 0);
}

uint64_t ItemQueue::CountItems() const {
  const auto is_item = [](const Entry& entry) {
    return entry.kind == Kind::kBlock || entry.kind == Kind::kGap;
  };
  ptrdiff_t count = 0;
  const Entry* from = read_;
  for (const Chunk& chunk : chunks_) {
    from = from == nullptr ? chunk.entries.get() : from;
    const Entry* const to = chunk.end == nullptr ? written_ : chunk.end;
    count += std::count_if(from, to, is_item);
    from = nullptr;
  }
  return static_cast<uint64_t>(count);
}

Result<std::optional<StreamItem>> ItemQueue::PopGap() {
  CLEW_CHECK(!gaps_->empty(), "no gap to pop");
  Gap gap = std::move(gaps_->front());
  gaps_->pop_front();
  Advance();
  return gap;
}

}  // namespace clew::decoder
