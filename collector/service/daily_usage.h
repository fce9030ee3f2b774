#ifndef CLEW_COLLECTOR_SERVICE_DAILY_USAGE_H_
#define CLEW_COLLECTOR_SERVICE_DAILY_USAGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "common/os/file.h"
#include "common/result.h"

namespace clew::collector {

// Bytes of chunks that each host sent on this day (UTC), against a limit.
// Thread-safe. Kept in a file, so that a restart does not forget; Save is
// called now and then, and what came after the last one before a crash is
// forgotten:
//
//     clew usage 1 <day since 1970>
//     <bytes> <host>
class DailyUsage {
 public:
  static constexpr size_t kHostsMax = 65536;
  struct Options {
    std::string path;
    uint64_t limit_bytes = 0;        // a host and a day
    std::function<int64_t()> now_s;  // since 1970
  };

  // Of a damaged file, what can be read counts, and damage() says so: counters
  // are not worth refusing to start for.
  [[nodiscard]] static Result<std::unique_ptr<DailyUsage>> Open(
      FileSystem& files, const Options& options);

  // kLimit where `bytes` more are too many for today; says what to do.
  [[nodiscard]] Status Check(const std::string& host, uint64_t bytes);
  // What was wrong with the file; empty: nothing.
  const std::string& damage() const { return damage_; }
  void Add(const std::string& host, uint64_t bytes);
  uint64_t LeftToday(const std::string& host);
  // Does nothing where nothing was added. kSystem: the old file is there.
  [[nodiscard]] Status Save();

 private:
  DailyUsage(FileSystem& files, const Options& options)
      : files_(files), options_(options) {}
  [[nodiscard]] Status Parse(std::string_view text);
  int64_t Today() const;
  // Begins a new day where it has come. REQUIRES: mutex_ is held.
  void Turn();

  FileSystem& files_;
  const Options options_;
  std::string damage_;
  std::mutex save_mutex_;  // over I/O
  std::mutex mutex_;
  int64_t day_ = 0;
  bool changed_ = false;
  std::map<std::string, uint64_t> bytes_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_DAILY_USAGE_H_
