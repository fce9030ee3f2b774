#ifndef CLEW_DECODER_GAP_COUNTS_H_
#define CLEW_DECODER_GAP_COUNTS_H_

#include <chrono>
#include <cstdint>

#include "common/progress.h"
#include "common/result.h"
#include "common/units.h"
#include "decoder/perf_trace.h"

namespace clew::decoder {

struct DecodeLimits {
  uint64_t instructions_max = 20'000'000'000;
  std::chrono::milliseconds time_max{600'000};
  // Blocks and gaps of the trace that are held at once.
  uint64_t buffered_items_max = uint64_t{1} << 22;
};

struct GapCounts {
  uint64_t instructions = 0;
  uint64_t not_64_bit = 0;  // of them, in code of other modes
  // Places on cores, however many slices each covers.
  uint64_t gaps = 0;
  uint64_t gaps_at_failure = 0;  // of them, in the last second of the trace
  uint64_t gaps_of_others = 0;   // not in gaps: no slice of the process in it
  bool limited = false;          // a limit was reached: the rest is unseen
};

// Decodes a whole trace and counts its gaps: those of the process of `failing`,
// or all if that thread is 0 or never had a core. Gaps that cannot be
// attributed to a process are counted too. Memory: what a few steps of decoding
// give, and some tens of bytes for each of the first million gaps; later ones
// all count. kLimit: a step gave more than limits.buffered_items_max.
[[nodiscard]] Result<GapCounts> CountGaps(const PerfTrace& trace, Tid failing,
                                          const DecodeLimits& limits,
                                          ProgressSink* progress);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_GAP_COUNTS_H_
