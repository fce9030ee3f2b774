#include "decoder/item_queue.h"

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

Gap ItemQueue::PopGap() {
  CLEW_CHECK(!empty() && FrontIsGap(), "no gap to pop");
  Gap gap = std::move(gaps_->front());
  gaps_->pop_front();
  Advance();
  return gap;
}

}  // namespace clew::decoder
