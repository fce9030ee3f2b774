#include "collector/service/call_pace.h"

#include <algorithm>

#include "collector/service/clients.h"

namespace clew::collector {

Status CallPace::Take(const std::string& host, uint64_t now_s) {
  const std::lock_guard lock(mutex_);
  if (busy_until_s_.size() >= kHostsMax && !busy_until_s_.contains(host)) {
    std::erase_if(busy_until_s_,
                  [now_s](const auto& at) { return at.second <= now_s; });
    if (busy_until_s_.size() >= kHostsMax) {
      return TryLater("{} hosts call at once, the limit; try again later",
                      kHostsMax);
    }
  }
  uint64_t& busy_until_s = busy_until_s_[host];
  busy_until_s = std::max(busy_until_s, now_s);
  if (busy_until_s - now_s >= kBurst) {
    return TryLater(
        "host {:?} calls more often than once a second; try again later", host);
  }
  ++busy_until_s;
  return {};
}

}  // namespace clew::collector
