#ifndef CLEW_BUNDLE_PERF_DATA_ATTR_H_
#define CLEW_BUNDLE_PERF_DATA_ATTR_H_

#include <cstdint>
#include <vector>

#include "bundle/perf_data/records.h"
#include "common/byte_reader.h"
#include "common/result.h"

namespace clew::bundle {

// What we need of a perf_event_attr (linux/perf_event.h).
struct EventAttr {
  uint32_t type = 0;
  uint64_t config = 0;
  uint64_t sample_type = 0;
  bool sample_id_all = false;
  std::vector<uint64_t> ids;
};

// Reads one attr at the cursor, which ends up behind it: attr.size bytes.
[[nodiscard]] Result<EventAttr> ReadEventAttr(ByteReader& reader);

// The attr whose events write a record that ends with `body`: found by its
// PERF_SAMPLE_IDENTIFIER, else the first. Null if there is none.
const EventAttr* AttrOfRecord(const std::vector<EventAttr>& attrs,
                              std::span<const std::byte> body);

// Splits the sample id off the end of `body` (a kernel record other than
// SAMPLE, without its header), and returns how many bytes it took.
[[nodiscard]] Result<uint64_t> ReadSampleId(const EventAttr& attr,
                                            std::span<const std::byte> body,
                                            const std::string& source,
                                            uint64_t file_offset,
                                            SampleId& sample);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_ATTR_H_
