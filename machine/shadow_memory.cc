#include <algorithm>
#include <iterator>

#include "machine/shadow.h"

namespace clew::machine {

const ShadowMemory::Cell* ShadowMemory::Find(uint64_t addr) const {
  const auto page = pages_.find(addr >> kPageShift);
  if (page == pages_.end()) {
    return nullptr;
  }
  const auto cell = page->second.find(static_cast<uint32_t>(addr % kPageBytes));
  return cell != page->second.end() ? &cell->second : nullptr;
}

void ShadowMemory::Set(uint64_t addr, Cell cell) {
  const auto [place, added] = pages_[addr >> kPageShift].insert_or_assign(
      static_cast<uint32_t>(addr % kPageBytes), cell);
  (void)place;
  shadowed_bytes_ += added ? 1 : 0;
}

void ShadowMemory::Clear(uint64_t addr) {
  const auto page = pages_.find(addr >> kPageShift);
  if (page == pages_.end()) {
    return;
  }
  shadowed_bytes_ -=
      page->second.erase(static_cast<uint32_t>(addr % kPageBytes));
  if (page->second.empty()) {
    pages_.erase(page);
  }
}

const Expr* ShadowMemory::Whole(uint64_t addr, uint32_t size_bytes) const {
  const Cell* first = Find(addr);
  if (first == nullptr || first->expr->width != 8 * size_bytes) {
    return nullptr;
  }
  for (uint32_t i = 0; i < size_bytes; ++i) {
    const Cell* cell = Find(addr + i);
    if (cell == nullptr || cell->expr != first->expr || cell->index != i) {
      return nullptr;
    }
  }
  return first->expr;
}

const Expr* ShadowMemory::Load(uint64_t addr, uint32_t size_bytes,
                               uint64_t value) const {
  if (shadowed_bytes_ == 0) {
    return nullptr;
  }
  if (const Expr* whole = Whole(addr, size_bytes)) {
    return whole;
  }
  const Expr* result = nullptr;  // bytes so far, the first lowest
  bool any = false;
  for (uint32_t i = 0; i < size_bytes; ++i) {
    const Cell* cell = Find(addr + i);
    any = any || cell != nullptr;
    const Expr* byte = cell != nullptr
                           ? pool_->Extract(cell->expr, 8 * cell->index, 8)
                           : pool_->Const(value >> (8 * i) & 0xff, 8);
    result = result == nullptr ? byte : pool_->Concat(byte, result);
  }
  return any && !result->is_const() ? result : nullptr;
}

void ShadowMemory::Store(uint64_t addr, uint32_t size_bytes, const Expr* expr) {
  if (expr == nullptr) {
    Forget(addr, size_bytes);
    return;
  }
  for (uint32_t i = 0; i < size_bytes; ++i) {
    Set(addr + i, Cell{expr, i});
  }
}

void ShadowMemory::Forget(uint64_t addr, uint64_t size_bytes) {
  const uint64_t end = addr + size_bytes;
  if (size_bytes >> kPageShift > pages_.size()) {
    ForgetByPages(addr, end);
    return;
  }
  while (addr != end && shadowed_bytes_ > 0) {
    // Pages without shadow are passed at once.
    if (!pages_.contains(addr >> kPageShift)) {
      addr += std::min(end - addr, kPageBytes - addr % kPageBytes);
    } else {
      Clear(addr++);
    }
  }
}

// A mapping may be of more pages than have shadows.
void ShadowMemory::ForgetByPages(uint64_t begin, uint64_t end) {
  for (auto at = pages_.begin(); at != pages_.end();) {
    auto& [number, page] = *at;
    const uint64_t page_addr = number << kPageShift;
    shadowed_bytes_ -= std::erase_if(page, [&](const auto& cell) {
      const uint64_t addr = page_addr + cell.first;
      return addr >= begin && addr < end;
    });
    at = page.empty() ? pages_.erase(at) : std::next(at);
  }
}

}  // namespace clew::machine
