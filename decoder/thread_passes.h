#ifndef CLEW_DECODER_THREAD_PASSES_H_
#define CLEW_DECODER_THREAD_PASSES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/result.h"
#include "decoder/streams.h"

namespace clew::decoder {

// The streams of a trace of any length, one thread after another, in bounded
// memory. A pass decodes and keeps what threads asked for later will want, up
// to buffered_items_max; threads for which there is no room are decoded again
// in a later pass. Cost: each pass gives at least one thread, so there are at
// most as many as threads, and one where everything has room. Not thread-safe.
class ThreadPasses {
 public:
  // `trace` must outlive it. options.threads and .forget_threads are not looked
  // at.
  [[nodiscard]] static Result<ThreadPasses> Create(
      const PerfTrace& trace, const StreamOptions& options);

  // Every thread, in the order in which to ask for them.
  const std::vector<Tid>& threads() const { return threads_; }

  // The streams from which `thread` is to be pulled next; those of an earlier
  // call are gone if they do not have it.
  // REQUIRES: threads() has `thread`, and it comes behind those pulled before.
  [[nodiscard]] Result<TraceStreams*> For(Tid thread);

  // What was decoded, in whichever pass, each thing once.
  // buffered_items_peak: of the pass with the most.
  StreamStats stats() const;
  uint64_t passes() const { return passes_; }

 private:
  ThreadPasses(const PerfTrace& trace, const StreamOptions& options)
      : trace_(&trace), options_(options) {}
  Status Begin();

  const PerfTrace* trace_;
  StreamOptions options_;
  std::vector<Tid> threads_;
  std::unique_ptr<TraceStreams> streams_;
  std::map<CoreId, StreamStats> past_;  // of the passes before, by core
  uint64_t past_peak_ = 0;
  uint64_t passes_ = 0;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_THREAD_PASSES_H_
