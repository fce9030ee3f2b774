#ifndef CLEW_BUNDLE_PERF_DATA_RECORD_BUILDER_H_
#define CLEW_BUNDLE_PERF_DATA_RECORD_BUILDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/perf_data/own_events.h"
#include "common/byte_builder.h"
#include "common/result.h"
#include "common/units.h"

// Records as the kernel lays them out.
//
// Source: linux/perf_event.h, enum perf_event_type.

namespace clew::bundle {

struct PerfMapping {
  TraceeAddr addr;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  uint32_t prot = 0;   // PROT_...
  uint32_t flags = 2;  // MAP_PRIVATE
  std::string path;    // or "[vdso]", "//anon"
  // NT_GNU_BUILD_ID, at most 20 bytes; empty where the file has none.
  std::vector<std::byte> build_id;
};

// A thread and the process that it is of.
struct TaskId {
  int32_t process = 0;
  Tid thread;
};

// Most bytes of a record, by the type of perf_event_header::size.
inline constexpr size_t kPerfRecordBytesMax = UINT16_MAX;

// Returns the size of a record with this body, with header and sample id.
size_t PerfRecordBytes(const ByteBuilder& body);

// Appends a record. REQUIRES: it has at most kPerfRecordBytesMax bytes.
void PutPerfRecord(ByteBuilder& out, uint32_t type, uint16_t misc,
                   const ByteBuilder& body, const OwnSampleId& id);

// Each of these returns the body of a record. This one's is PERF_RECORD_COMM.
ByteBuilder CommBody(const TaskId& task, std::string_view name);

// PERF_RECORD_FORK and _EXIT. `nanos` is the time of perf's clock.
ByteBuilder TaskBody(const TaskId& task, const TaskId& parent, uint64_t nanos);

// PERF_RECORD_MMAP2, which has a build-id if PERF_RECORD_MISC_MMAP_BUILD_ID is
// in MmapMisc. Fails with kInvalidArgument if the build-id has more than 20
// bytes.
[[nodiscard]] Result<ByteBuilder> MmapBody(const TaskId& task,
                                           const PerfMapping& mapping);
uint16_t MmapMisc(const PerfMapping& mapping);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_RECORD_BUILDER_H_
