#ifndef CLEW_COLLECTOR_SERVICE_CALL_PACE_H_
#define CLEW_COLLECTOR_SERVICE_CALL_PACE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "common/result.h"

namespace clew::collector {

// How often each host may make a call that costs the collector a write: once a
// second in the long run, and up to `burst` times at once. Thread-safe.
//
// A host's calls are counted as if each took a second and they came one after
// the other: `busy_until_s` is when the last one would end. A host may call
// while that is less than `burst` seconds away.
class CallPace {
 public:
  static constexpr uint64_t kBurst = 10;
  static constexpr size_t kHostsMax = 65536;

  // `now_s` never goes back. kSystem (EAGAIN): later. Where kHostsMax are busy,
  // for one more, too.
  [[nodiscard]] Status Take(const std::string& host, uint64_t now_s);

 private:
  std::mutex mutex_;
  std::map<std::string, uint64_t> busy_until_s_;  // idle ones may be absent
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_CALL_PACE_H_
