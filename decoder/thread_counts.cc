#include "decoder/thread_counts.h"

#include <map>
#include <utility>

namespace clew::decoder {
namespace {

// Blocks between two calls of the progress.
constexpr uint64_t kBlocksPerUpdate = 4096;

std::map<Tid, ThreadCount> ThreadsOf(const PerfTrace& trace) {
  std::map<Tid, ThreadCount> threads;
  for (const Slice& slice : trace.slices()) {
    ThreadCount& count = threads[slice.thread];
    count.thread = slice.thread;
    ++count.slices;
  }
  return threads;
}

}  // namespace

Result<TraceCounts> CountThreads(const PerfTrace& trace,
                                 const StreamOptions& options,
                                 ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(streams, TraceStreams::Create(trace, options));
  std::map<Tid, ThreadCount> threads = ThreadsOf(trace);
  uint64_t blocks = 0;
  const auto count = [&](const StreamItem& item) {
    if (const auto* gap = std::get_if<Gap>(&item)) {
      ++threads[trace.slices()[gap->slice].thread].gaps;
      return;
    }
    const auto& block = std::get<StreamBlock>(item);
    threads[trace.slices()[block.slice].thread].instructions +=
        block.insn_count;
    if (progress != nullptr && ++blocks % kBlocksPerUpdate == 0) {
      progress->Update(streams->stats().instructions, 0);
    }
  };
  for (const CoreId core : streams->cores()) {
    while (true) {
      CLEW_ASSIGN_OR_RETURN(item, streams->NextOnCore(core));
      if (!item) {
        break;
      }
      count(*item);
    }
  }
  TraceCounts counts;
  for (const Tid thread : streams->threads()) {
    counts.threads.push_back(threads[thread]);
  }
  counts.stats = streams->stats();
  return counts;
}

}  // namespace clew::decoder
