#include "decoder/item_queue.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace clew::decoder {

void ItemQueue::Push(Gap gap) {
  if (gaps_ == nullptr) {
    gaps_ = std::make_unique<std::deque<Gap>>();
  }
  gaps_->push_back(std::move(gap));
  entries_.push_back({.kind = Kind::kGap});
}

uint64_t ItemQueue::CountItems() const {
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(read_);
  return static_cast<uint64_t>(
      std::count_if(first, entries_.end(), [](const Entry& entry) {
        return entry.kind == Kind::kBlock || entry.kind == Kind::kGap;
      }));
}

Gap ItemQueue::PopGap() {
  CLEW_CHECK(!empty() && FrontIsGap(), "no gap to pop");
  Gap gap = std::move(gaps_->front());
  gaps_->pop_front();
  Advance();
  return gap;
}

}  // namespace clew::decoder
