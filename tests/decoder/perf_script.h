#ifndef CLEW_TESTS_DECODER_PERF_SCRIPT_H_
#define CLEW_TESTS_DECODER_PERF_SCRIPT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/units.h"
#include "decoder/streams.h"

namespace clew::decoder {

struct Branch {
  uint64_t from = 0;
  uint64_t to = 0;
  bool operator==(const Branch&) const = default;
};
using Branches = std::map<Tid, std::vector<Branch>>;

// The branches that `perf script --itrace=b` finds in a perf.data, thread by
// thread: those taken, from user mode to user mode. kUnsupported: no perf here.
[[nodiscard]] Result<Branches> BranchesOfPerf(const std::string& perf_data);

// The same, of our streams: whichever instruction is not followed by the one
// behind it. What left user mode counts for neither.
[[nodiscard]] Result<Branches> BranchesOfStreams(TraceStreams& streams);

}  // namespace clew::decoder

#endif  // CLEW_TESTS_DECODER_PERF_SCRIPT_H_
