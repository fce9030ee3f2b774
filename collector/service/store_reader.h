#ifndef CLEW_COLLECTOR_SERVICE_STORE_READER_H_
#define CLEW_COLLECTOR_SERVICE_STORE_READER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "collector/catalogue/catalogue.h"
#include "collector/service/intake.h"
#include "collector/store/bundle_store.h"
#include "common/result.h"

namespace clew::collector {

// Checks the catalogue's file, reads a store that was opened with read_later,
// makes the catalogue say what it has, and allows removals then. `go_on` as
// BundleStore::ReadAll has it.
[[nodiscard]] Result<Reconciled> ReadStore(BundleStore& store,
                                           Catalogue& catalogue, int64_t now_s,
                                           const std::function<bool()>& go_on);

// The same in a thread of its own, behind a collector that takes calls; again
// and again until it succeeds. Thread-safe.
class StoreReader {
 public:
  struct Options {
    std::function<int64_t()> now_s;  // since 1970
    std::chrono::milliseconds retry{60'000};
    // What came of an attempt; the last one has a value. From its own thread.
    std::function<void(const Result<Reconciled>&)> report;
  };
  // Both must outlive it.
  StoreReader(Options options, BundleStore& store, Catalogue& catalogue);
  StoreReader(const StoreReader&) = delete;
  StoreReader& operator=(const StoreReader&) = delete;
  ~StoreReader();  // stops
  // Ends an attempt that runs, without a report. Twice is once.
  void Stop();

 private:
  void Run();
  bool IsStopped() const;
  // False: it was stopped.
  bool Rest();

  const Options options_;
  BundleStore& store_;
  Catalogue& catalogue_;
  mutable std::mutex mutex_;
  std::condition_variable stop_asked_;
  bool stop_ = false;
  std::thread thread_;  // last: uses all above
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_STORE_READER_H_
