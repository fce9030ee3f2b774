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
// kCorruptInput: perf said anything else, such as an error of decoding.
[[nodiscard]] Result<Branches> BranchesOfPerf(const std::string& perf_data);

// Our streams' branches: whichever instruction is not followed by the one
// behind it. What left user mode counts for neither. `to` is 0 for a branch
// that a thread ends with: it went to where the thread was stopped, or nowhere.
[[nodiscard]] Result<Branches> BranchesOfStreams(TraceStreams& streams);

// Where each instruction of a thread was, one after another.
using Ips = std::map<Tid, std::vector<uint64_t>>;

// What `perf script --itrace=i0ns` finds, whatever errors it meets.
// kUnsupported: no perf here.
[[nodiscard]] Result<Ips> IpsOfPerf(const std::string& perf_data);
// Of our streams. kCorruptInput: they have a gap.
[[nodiscard]] Result<Ips> IpsOfStreams(TraceStreams& streams);

// Drops what a thread ends with where perf tells its target and ours does not.
void ForgetOpenEnds(Branches& perf, Branches& ours);

}  // namespace clew::decoder

#endif  // CLEW_TESTS_DECODER_PERF_SCRIPT_H_
