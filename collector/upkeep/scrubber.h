#ifndef CLEW_COLLECTOR_UPKEEP_SCRUBBER_H_
#define CLEW_COLLECTOR_UPKEEP_SCRUBBER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "collector/store/bundle_store.h"
#include "common/os/file.h"
#include "common/result.h"

namespace clew::collector {

// One way through a store, a list or a chunk a step. What is damaged is known
// to the store afterwards. Not thread-safe; others may use the store meanwhile.
class ScrubWalk {
 public:
  // From the beginning, or from behind chunk `last` of a walk that was broken
  // off. `store` must outlive the walk.
  explicit ScrubWalk(BundleStore& store, std::optional<ChunkId> last = {});
  // Bytes that were read; nullopt: the end. kCorruptInput: what it read is
  // damaged. kSystem: it could not be tried. After either the next step goes
  // on behind it.
  [[nodiscard]] Result<std::optional<uint64_t>> Step();
  // The last chunk that was passed; nullopt: still at the lists.
  const std::optional<ChunkId>& last() const { return last_; }

 private:
  [[nodiscard]] Status StepList(const BundleId& id);

  BundleStore& store_;
  std::vector<StoredBundle> lists_;
  size_t next_list_ = 0;
  std::optional<ChunkId> last_;
};

struct ScrubCounts {
  uint64_t bytes = 0;  // read since the start
  uint64_t found = 0;  // lists and chunks found damaged since the start
};

// Walks through the store in the background, no faster than a rate, and begins
// again a period after the last beginning. How far it is outlives the program:
//
//     clew scrub 1 <end of the last whole walk> <begin of the last walk>
//     <chunk that this walk has passed, or "-">
//
// Thread-safe.
class Scrubber {
 public:
  struct Options {
    std::string path;                // of that file
    uint64_t bytes_per_s = 0;        // REQUIRES: above 0
    uint64_t period_s = 0;           // from the begin of a walk to the next
    std::function<int64_t()> now_s;  // since 1970
    // A line on what was found. From its own thread.
    std::function<void(std::string_view)> report;
  };
  // A file that a scrubber did not write is treated as absent. `store` must
  // outlive it.
  [[nodiscard]] static std::unique_ptr<Scrubber> Start(FileSystem& files,
                                                       const Options& options,
                                                       BundleStore& store);
  ~Scrubber();  // stops
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;
  // Twice is once.
  void Stop();
  ScrubCounts counts() const;

 private:
  // Times are since 1970, 0: never.
  struct Progress {
    int64_t end_s = 0;
    int64_t begin_s = 0;
    std::optional<ChunkId> last;  // of a walk that was broken off
  };
  Scrubber(FileSystem& files, const Options& options, BundleStore& store)
      : files_(files), options_(options), store_(store) {}
  void Load();
  void Save();
  void Run();
  // False: it was stopped.
  bool Walk();
  void Count(const Result<std::optional<uint64_t>>& step);
  // False: it was stopped.
  bool Rest(double seconds);
  bool IsDue() const;

  FileSystem& files_;
  const Options options_;
  BundleStore& store_;
  Progress progress_;  // of the thread
  int64_t saved_s_ = 0;

  mutable std::mutex mutex_;  // for all below
  std::condition_variable stop_asked_;
  bool stop_ = false;
  ScrubCounts counts_;
  std::thread thread_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_UPKEEP_SCRUBBER_H_
