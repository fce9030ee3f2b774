// perf.data: records, then packets and control flow of its PT bytes, without
// code.

#include "bundle/perf_data/perf_data.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "decoder/perf_trace.h"
#include "decoder/streams.h"

namespace {

using namespace clew;           // NOLINT: a fuzz target is one function
using namespace clew::decoder;  // NOLINT

Status DecodeAll(std::span<const std::byte> bytes) {
  CLEW_ASSIGN_OR_RETURN(data, bundle::PerfData::Over(bytes, "fuzz"));
  CLEW_ASSIGN_OR_RETURN(trace, PerfTrace::Load(std::move(data), {}));
  CLEW_ASSIGN_OR_RETURN(streams, TraceStreams::Create(*trace, {}));
  for (const Tid tid : streams->threads()) {
    while (true) {
      CLEW_ASSIGN_OR_RETURN(item, streams->Next(tid));
      if (!item) {
        break;
      }
    }
  }
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)DecodeAll(std::as_bytes(std::span(data, size)));  // errors are fine
  return 0;
}
