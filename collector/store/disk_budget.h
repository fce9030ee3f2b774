#ifndef CLEW_COLLECTOR_STORE_DISK_BUDGET_H_
#define CLEW_COLLECTOR_STORE_DISK_BUDGET_H_

#include <cstdint>
#include <mutex>
#include <string_view>

#include "common/result.h"

namespace clew::collector {

// Bytes that the collector may have on disk: what is there and what was
// promised to writers, counted before it is written. Thread-safe.
class DiskBudget {
 public:
  explicit DiskBudget(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // kLimit, naming `what`, where it does not fit; nothing is taken then.
  [[nodiscard]] Status Take(uint64_t bytes, std::string_view what);
  // For what is on disk already, limit or not.
  void TakeAnyway(uint64_t bytes);
  // REQUIRES: so much was taken.
  void Return(uint64_t bytes);

  uint64_t used_bytes() const;
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  const uint64_t limit_bytes_;
  mutable std::mutex mutex_;
  uint64_t used_bytes_ = 0;  // may be above the limit after a restart
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_STORE_DISK_BUDGET_H_
