#include "decoder/item_queue.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace clew::decoder {

void ItemQueue::Grow() {
  constexpr size_t kFirst = 32;
  capacity_ = std::max(kFirst, 2 * capacity_);
  auto grown = std::make_unique_for_overwrite<Entry[]>(capacity_);
  std::copy_n(entries_.get(), size_, grown.get());
  entries_ = std::move(grown);
}

void ItemQueue::Push(Gap gap) {
  if (gaps_ == nullptr) {
    gaps_ = std::make_unique<std::deque<Gap>>();
  }
  gaps_->push_back(std::move(gap));
  if (size_ == capacity_) {
    Grow();
  }
  Append(Kind::kGap, 0);
}

uint64_t ItemQueue::CountItems() const {
  const Entry* const first = entries_.get();
  return static_cast<uint64_t>(
      std::count_if(first + read_, first + size_, [](const Entry& entry) {
        return entry.kind == Kind::kBlock || entry.kind == Kind::kGap;
      }));
}

Result<std::optional<StreamItem>> ItemQueue::PopGap() {
  CLEW_CHECK(!gaps_->empty(), "no gap to pop");
  Gap gap = std::move(gaps_->front());
  gaps_->pop_front();
  Advance();
  return gap;
}

}  // namespace clew::decoder
