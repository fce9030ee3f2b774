#include "decoder/thread_passes.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace clew::decoder {
namespace {

// A pass decodes a core from its beginning, as far as its threads need: of two
// passes one has all that the other has.
void TakeLarger(StreamStats& into, const StreamStats& from) {
  for (const auto field :
       {&StreamStats::instructions, &StreamStats::blocks, &StreamStats::gaps,
        &StreamStats::gap_bytes, &StreamStats::instructions_without_thread,
        &StreamStats::tsc_backwards, &StreamStats::time_contradictions}) {
    into.*field = std::max(into.*field, from.*field);
  }
}

void TakeLarger(std::map<CoreId, StreamStats>& into,
                const std::map<CoreId, StreamStats>& from) {
  for (const auto& [core, stats] : from) {
    TakeLarger(into[core], stats);
  }
}

}  // namespace

Result<ThreadPasses> ThreadPasses::Create(const PerfTrace& trace,
                                          const StreamOptions& options) {
  ThreadPasses passes(trace, options);
  passes.options_.threads.clear();
  passes.options_.forget_threads = true;
  CLEW_RETURN_IF_ERROR(passes.Begin());
  passes.threads_ = passes.streams_->threads();
  return passes;
}

Status ThreadPasses::Begin() {
  CLEW_ASSIGN_OR_RETURN(streams, TraceStreams::Create(*trace_, options_));
  streams_ = std::move(streams);
  ++passes_;
  return {};
}

Result<TraceStreams*> ThreadPasses::For(Tid thread) {
  if (!streams_->Keeps(thread)) {
    const auto from = std::ranges::find(threads_, thread);
    CLEW_CHECK(from != threads_.end(), "no thread {}", thread);
    TakeLarger(past_, streams_->StatsByCore());
    past_peak_ = std::max(past_peak_, streams_->stats().buffered_items_peak);
    options_.threads.assign(from, threads_.end());
    streams_.reset();  // its memory goes before the next one's comes
    CLEW_RETURN_IF_ERROR(Begin());
  }
  return streams_.get();
}

StreamStats ThreadPasses::stats() const {
  std::map<CoreId, StreamStats> all = past_;
  TakeLarger(all, streams_->StatsByCore());
  StreamStats sum = Sum(all);
  sum.buffered_items_peak =
      std::max(past_peak_, streams_->stats().buffered_items_peak);
  return sum;
}

}  // namespace clew::decoder
