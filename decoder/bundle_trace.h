#ifndef CLEW_DECODER_BUNDLE_TRACE_H_
#define CLEW_DECODER_BUNDLE_TRACE_H_

#include <memory>

#include "bundle/bundle.h"
#include "common/result.h"
#include "decoder/perf_trace.h"

namespace clew::decoder {

// Loads the trace of `bundle`, which must outlive it. Errors as of Bundle.
[[nodiscard]] Result<std::unique_ptr<PerfTrace>> ReadTrace(
    const bundle::Bundle& bundle);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_BUNDLE_TRACE_H_
