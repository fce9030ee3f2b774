#include "collector/store/disk_budget.h"

#include "common/check.h"

namespace clew::collector {

Status DiskBudget::Take(uint64_t bytes, std::string_view what) {
  const std::lock_guard lock(mutex_);
  if (used_bytes_ > limit_bytes_ || bytes > limit_bytes_ - used_bytes_) {
    return LimitReached(
        "{} needs {} bytes, and {} of the store's {} bytes are in use; remove "
        "bundles or raise the disk budget",
        what, bytes, used_bytes_, limit_bytes_);
  }
  used_bytes_ += bytes;
  return {};
}

void DiskBudget::TakeAnyway(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  used_bytes_ += bytes;
}

void DiskBudget::Return(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  CLEW_CHECK(bytes <= used_bytes_, "{} bytes returned of {}", bytes,
             used_bytes_);
  used_bytes_ -= bytes;
}

uint64_t DiskBudget::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

}  // namespace clew::collector
