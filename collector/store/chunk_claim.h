#ifndef CLEW_COLLECTOR_STORE_CHUNK_CLAIM_H_
#define CLEW_COLLECTOR_STORE_CHUNK_CLAIM_H_

#include "collector/store/chunk_store.h"

namespace clew::collector {

// The right to rename or remove the file of one chunk.
class ChunkStore::Claim {
 public:
  Claim(ChunkStore& store, const ChunkId& chunk)
      : store_(store), chunk_(chunk) {
    std::unique_lock lock(store_.mutex_);
    store_.claim_ended_.wait(
        lock, [&] { return store_.claimed_.insert(chunk_).second; });
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim() {
    {
      const std::lock_guard lock(store_.mutex_);
      store_.claimed_.erase(chunk_);
    }
    store_.claim_ended_.notify_all();
  }

 private:
  ChunkStore& store_;
  const ChunkId chunk_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_STORE_CHUNK_CLAIM_H_
