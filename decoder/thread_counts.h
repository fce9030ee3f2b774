#ifndef CLEW_DECODER_THREAD_COUNTS_H_
#define CLEW_DECODER_THREAD_COUNTS_H_

#include <cstdint>
#include <vector>

#include "common/progress.h"
#include "common/result.h"
#include "common/units.h"
#include "decoder/perf_trace.h"
#include "decoder/streams.h"

namespace clew::decoder {

// What a thread did, as far as its trace tells.
struct ThreadCount {
  Tid thread;
  uint64_t slices = 0;
  uint64_t instructions = 0;
  uint64_t gaps = 0;  // one that covers several of its slices counts in each
};

struct TraceCounts {
  std::vector<ThreadCount> threads;  // in the order of TraceStreams::threads()
  StreamStats stats;
};

// Decodes everything once, core by core, so that nothing waits for a thread
// however unevenly threads go on. Memory: what a few steps of decoding give.
// `progress` may be null. kLimit: a step gave more than
// options.buffered_items_max.
[[nodiscard]] Result<TraceCounts> CountThreads(const PerfTrace& trace,
                                               const StreamOptions& options,
                                               ProgressSink* progress);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_THREAD_COUNTS_H_
