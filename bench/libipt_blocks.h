#ifndef CLEW_BENCH_LIBIPT_BLOCKS_H_
#define CLEW_BENCH_LIBIPT_BLOCKS_H_

#include "common/result.h"
#include "decoder/streams.h"

namespace clew::decoder {

// libipt's block decoder over the PT of a trace of one process, with nothing
// made of its blocks; each piece up to its first error.
[[nodiscard]] Result<StreamStats> CountBlocksOfLibipt(const PerfTrace& trace);

}  // namespace clew::decoder

#endif  // CLEW_BENCH_LIBIPT_BLOCKS_H_
