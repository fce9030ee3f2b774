#ifndef CLEW_BUNDLE_PERF_DATA_ATTR_H_
#define CLEW_BUNDLE_PERF_DATA_ATTR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_ATTR_H_
