#include "collector/log.h"

#include <fmt/format.h>

namespace clew::collector {
void Log::Write(Priority priority, std::string_view event,
                const std::vector<Field>& fields) {
  const std::string line = EventLine(priority, priorities_, event, fields);
  const std::lock_guard lock(mutex_);
  // A log that cannot be written has nowhere to say so.
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);
}

void Log::WriteOnce(Priority priority, std::string_view event,
                    const std::string& condition,
                    const std::vector<Field>& fields) {
  const uint64_t now_s = now_s_();
  uint64_t left_out = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto at = conditions_.find(condition);
    if (at != conditions_.end() &&
        now_s - at->second.written_s < kRepeatPeriod_s) {
      ++at->second.left_out;
      return;
    }
    if (at == conditions_.end() && conditions_.size() >= kConditionsMax) {
      conditions_.clear();  // of strangers' making; begin again
    }
    Condition& now = conditions_[condition];
    left_out = now.left_out;
    now = {.written_s = now_s, .left_out = 0};
  }
  std::vector<Field> all = fields;
  if (left_out > 0) {
    all.emplace_back("left_out", fmt::to_string(left_out));
  }
  Write(priority, event, all);
}

}  // namespace clew::collector
