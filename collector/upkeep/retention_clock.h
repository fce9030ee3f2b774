#ifndef CLEW_COLLECTOR_UPKEEP_RETENTION_CLOCK_H_
#define CLEW_COLLECTOR_UPKEEP_RETENTION_CLOCK_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "common/os/file.h"
#include "common/result.h"

namespace clew::collector {

// The time by which bundles grow old: seconds since 1970 that a jump of the
// system's clock does not move.
//
// It never goes back, is never ahead of the system's clock but where that was
// set back, and goes on by what a steady clock has counted while the collector
// ran; where the system's clock is ahead of it, twice as fast until it has
// caught up. So a clock that is wrong by 60 days ages no bundle by more than
// the time that somebody has had to see it, and a collector that was off for
// 60 days has caught up 60 days later:
//
//     system's clock  10:00  10:05  +60 d, 10:10  +60 d, 10:15  10:20
//     this            10:00  10:05  10:15         10:25         10:25
//
// In a file, "clew retention clock 1\n<seconds>\n". Thread-safe.
class RetentionClock {
 public:
  static constexpr int64_t kLagMax_s = 24 * 60 * 60;

  // `begin_s` is for the first start: what is known to have passed, such as
  // when the latest bundle was received. A file that this
  // class did not write is treated as absent.
  RetentionClock(FileSystem& files, const std::string& path, int64_t begin_s,
                 uint64_t steady_s);
  // The time now. kSystem: cannot be saved; it goes on nevertheless.
  [[nodiscard]] Status Advance(int64_t wall_s, uint64_t steady_s);
  int64_t now_s() const;
  // The system's clock was ahead by more than kLagMax_s.
  bool IsBehind() const;

 private:
  FileSystem& files_;
  const std::string path_;
  mutable std::mutex mutex_;
  int64_t now_s_ = 0;
  uint64_t steady_s_ = 0;
  bool behind_ = false;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_UPKEEP_RETENTION_CLOCK_H_
