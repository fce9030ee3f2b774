#include "decoder/gap_counts.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "decoder/streams.h"

namespace clew::decoder {
namespace {

using bundle::ToPerfNanos;

constexpr uint64_t kAtFailureNanos = 1'000'000'000;
// Gaps that are told apart.
constexpr size_t kPlacesMax = 1 << 20;

// The process of a thread when it last had a core; 0: not known.
int32_t ProcessOf(const PerfTrace& trace, Tid thread) {
  int32_t process = 0;
  TscTicks last{0};
  for (const Slice& slice : trace.slices()) {
    if (slice.thread == thread && slice.time.lo >= last) {
      process = slice.process;
      last = slice.time.lo;
    }
  }
  return process;
}

// The last time at which a thread was on a core, in perf's nanoseconds.
uint64_t EndOf(const PerfTrace& trace) {
  uint64_t end = 0;
  for (const Slice& slice : trace.slices()) {
    const TscTicks last =
        slice.time.hi == kTscUnknown ? slice.time.lo : slice.time.hi;
    end = std::max(end, ToPerfNanos(last, trace.conversion()).as_int());
  }
  return end;
}

class Counter {
 public:
  Counter(const PerfTrace& trace, Tid failing, const DecodeLimits& limits,
          ProgressSink* progress)
      : trace_(trace),
        limits_(limits),
        progress_(progress),
        deadline_(std::chrono::steady_clock::now() + limits.time_max),
        end_nanos_(EndOf(trace)),
        process_(ProcessOf(trace, failing)) {}

  // Decodes everything, core by core, so that nothing waits for a thread.
  Result<GapCounts> Run() {
    CLEW_ASSIGN_OR_RETURN(
        streams,
        TraceStreams::Create(
            trace_, {.buffered_items_max = limits_.buffered_items_max}));
    for (const CoreId core : streams->cores()) {
      CLEW_RETURN_IF_ERROR(CountCore(*streams, core));
    }
    return Sum(streams->stats());
  }

 private:
  // One place on a core counts once, whoever's slices it covers.
  struct Place {
    bool counts = false;
    bool at_failure = false;
  };

  bool Limited(const TraceStreams& streams) {
    const uint64_t done = streams.stats().instructions;
    counts_.limited = done >= limits_.instructions_max ||
                      std::chrono::steady_clock::now() >= deadline_;
    if (progress_ != nullptr) {
      progress_->Update(done, 0);
    }
    return counts_.limited;
  }

  // Until the core's end, or a limit.
  Status CountCore(TraceStreams& streams, CoreId core) {
    constexpr uint64_t kItems = 4096;  // between two looks at the limits
    for (uint64_t i = 0; i % kItems != 0 || !Limited(streams); ++i) {
      CLEW_ASSIGN_OR_RETURN(item, streams.NextOnCore(core));
      if (!item) {
        break;
      }
      if (const auto* gap = std::get_if<Gap>(&*item)) {
        CountGap(*gap);
      } else {
        CountBlock(std::get<StreamBlock>(*item));
      }
    }
    return {};
  }

  void CountBlock(const StreamBlock& block) {
    counts_.not_64_bit += block.code_bits == 64 ? 0 : block.insn_count;
  }

  void CountGap(const Gap& gap) {
    const uint64_t until =
        gap.time.hi == kTscUnknown
            ? end_nanos_
            : ToPerfNanos(gap.time.hi, trace_.conversion()).as_int();
    const bool at_failure = until + kAtFailureNanos >= end_nanos_;
    const Slice& slice = trace_.slices()[gap.slice];
    const bool counts =
        process_ == 0 || slice.process == 0 || slice.process == process_;
    const std::pair at(slice.core, gap.aux_offset);
    if (places_.size() >= kPlacesMax && !places_.contains(at)) {
      counts_.gaps_at_failure += counts && at_failure ? 1 : 0;
      return;
    }
    Place& place = places_[at];
    place.counts |= counts;
    place.at_failure |= counts && at_failure;
  }

  GapCounts Sum(const StreamStats& stats) {
    counts_.instructions = stats.instructions;
    for (const auto& [at, place] : places_) {
      counts_.gaps_of_others += place.counts ? 0 : 1;
      counts_.gaps_at_failure += place.at_failure ? 1 : 0;
    }
    // More are counted here than the threads were told of where a limit ended
    // it, and where no thread had the core.
    counts_.gaps = stats.gaps - std::min(stats.gaps, counts_.gaps_of_others) +
                   (stats.instructions_without_thread > 0 ? 1 : 0);
    return counts_;
  }

  const PerfTrace& trace_;
  const DecodeLimits& limits_;
  ProgressSink* progress_;
  std::chrono::steady_clock::time_point deadline_;
  uint64_t end_nanos_;
  int32_t process_;  // of which gaps count; 0: of all
  std::map<std::pair<CoreId, uint64_t>, Place> places_;
  GapCounts counts_;
};

}  // namespace

Result<GapCounts> CountGaps(const PerfTrace& trace, Tid failing,
                            const DecodeLimits& limits,
                            ProgressSink* progress) {
  return Counter(trace, failing, limits, progress).Run();
}

}  // namespace clew::decoder
