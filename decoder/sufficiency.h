#ifndef CLEW_DECODER_SUFFICIENCY_H_
#define CLEW_DECODER_SUFFICIENCY_H_

#include <cstdint>

#include "bundle/bundle.h"
#include "common/bundle_facts.h"
#include "common/progress.h"
#include "common/result.h"
#include "decoder/gap_counts.h"

namespace clew::decoder {

// What was found, and what follows from it.
struct SufficiencyReport {
  Sufficiency sufficiency;
  // Nothing is missing that solving needs. Not a promise: the search for an
  // order may end without an answer.
  bool solvable = false;
  bool corrupt = false;  // a file breaks its format
  bool limited = false;  // a limit was reached: the rest of the trace is unseen
};

// Whether a bundle can be expected to be solved: decodes its whole trace and
// looks at what else it has. The score is the sum of these, of which each is
// given whole or not:
//
//     10  the trace decodes: some instruction comes out; without it, the score
//         is 0
//     20  no gap in the last second of the trace
//     10  no gap in the trace, and no loss that the recorder noted; where the
//         process that failed is known, its gaps alone count
//     15  no image is missing
//     20  the start state is there
//     10  the input log is there
//     10  and no input in it is unknown
//      5  a core dump is there
//
// Removing a file never raises it, nor does damaging one that was whole.
//
// A file that breaks its format counts as absent, and is a reason; so this
// fails only if the manifest cannot be read, which `bundle` did before. Memory:
// as TraceStreams. `progress` may be null.
SufficiencyReport CheckSufficiency(const bundle::Bundle& bundle,
                                   const DecodeLimits& limits,
                                   ProgressSink* progress);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_SUFFICIENCY_H_
