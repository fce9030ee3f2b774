#ifndef CLEW_COLLECTOR_LOG_H_
#define CLEW_COLLECTOR_LOG_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/text/event_line.h"

namespace clew::collector {

// The collector's log: events, each a line (common/text/event_line), with
// priorities only where journald reads. An event that repeats is written once
// in a while and counted in between. Thread-safe.
class Log {
 public:
  using Priority = clew::Priority;
  using Field = EventField;
  static constexpr uint64_t kRepeatPeriod_s = 60;
  static constexpr size_t kConditionsMax = 1024;

  // `now_s` never goes back. `out` must outlive the log.
  Log(std::FILE* out, bool priorities, std::function<uint64_t()> now_s)
      : out_(out), priorities_(priorities), now_s_(std::move(now_s)) {}

  void Write(Priority priority, std::string_view event,
             const std::vector<Field>& fields = {});
  // The same, at most once in kRepeatPeriod_s for a `condition`; the next line
  // of it says how many were left out.
  void WriteOnce(Priority priority, std::string_view event,
                 const std::string& condition,
                 const std::vector<Field>& fields);

 private:
  struct Condition {
    uint64_t written_s = 0;
    uint64_t left_out = 0;
  };

  std::FILE* const out_;
  const bool priorities_;
  const std::function<uint64_t()> now_s_;
  std::mutex mutex_;
  std::map<std::string, Condition> conditions_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_LOG_H_
