#ifndef CLEW_BUNDLE_PERF_DATA_SAMPLE_ID_H_
#define CLEW_BUNDLE_PERF_DATA_SAMPLE_ID_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/result.h"
#include "common/units.h"

namespace clew::bundle {

// What the kernel appends to its records (attr.sample_id_all). A field is
// absent where attr.sample_type did not ask for it.
//
// Source: linux/perf_event.h, struct sample_id.
struct SampleId {
  std::optional<int32_t> pid;
  std::optional<Tid> tid;
  std::optional<PerfNanos> time;
  std::optional<CoreId> core;
  std::optional<uint64_t> id;  // of the event
};

// Reads the sample id off the end of `body` (a kernel record other than SAMPLE,
// without its header) of an event with this attr.sample_type and
// attr.sample_id_all, and returns how many bytes it takes. `source` and
// `file_offset`, where the body begins, are as of ByteReader. Allocates only
// for errors, unless `source` is long.
//
// Fails with kCorruptInput if the body is shorter than the sample id.
[[nodiscard]] Result<uint64_t> ReadSampleId(uint64_t sample_type,
                                            std::span<const std::byte> body,
                                            const std::string& source,
                                            uint64_t file_offset,
                                            SampleId& sample);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_SAMPLE_ID_H_
