#ifndef CLEW_COMMON_OS_BLOCKED_SIGNALS_H_
#define CLEW_COMMON_OS_BLOCKED_SIGNALS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "common/os/ptrace.h"
#include "common/result.h"

namespace clew {

// Threads of a traced process that block all signals while this exists.
// REQUIRES: they are stopped when it begins and ends.
class BlockedSignals {
 public:
  explicit BlockedSignals(TracedProcess& process) : process_(process) {}
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() {
    for (const auto& [thread, mask] : masks_) {
      (void)process_.SetSignalMask(Tid(thread), mask);  // or it has ended
    }
  }
  [[nodiscard]] Status Block(const std::vector<Tid>& threads) {
    for (const Tid thread : threads) {
      CLEW_ASSIGN_OR_RETURN(mask, process_.SignalMask(thread));
      masks_[thread.as_int()] = mask;
      CLEW_RETURN_IF_ERROR(process_.SetSignalMask(thread, UINT64_MAX));
    }
    return {};
  }

 private:
  TracedProcess& process_;
  std::map<int32_t, uint64_t> masks_;
};

}  // namespace clew

#endif  // CLEW_COMMON_OS_BLOCKED_SIGNALS_H_
