#include "bundle/perf_data/record_builder.h"

#include <linux/perf_event.h>

#include <span>

#include "common/build_id.h"
#include "common/check.h"

namespace clew::bundle {

size_t PerfRecordBytes(const ByteBuilder& body) {
  return sizeof(perf_event_header) + body.size() + kSampleIdBytes;
}

void PutPerfRecord(ByteBuilder& out, uint32_t type, uint16_t misc,
                   const ByteBuilder& body, const OwnSampleId& id) {
  const size_t bytes = PerfRecordBytes(body);
  CLEW_CHECK(bytes <= kPerfRecordBytesMax, "a record of {} bytes", bytes);
  out.Put(type).Put(misc).Put(static_cast<uint16_t>(bytes));
  out.PutBytes(body.bytes());
  out.Put(id.process).Put(id.thread.as_int()).Put(id.time.as_int());
  out.Put(id.core.as_int()).Put(uint32_t{0}).Put(id.event_id);
}

ByteBuilder CommBody(const TaskId& task, std::string_view name) {
  ByteBuilder body;
  body.Put(task.process).Put(task.thread.as_int());
  body.PutPaddedText(name, 8);
  return body;
}

ByteBuilder TaskBody(const TaskId& task, const TaskId& parent, uint64_t nanos) {
  ByteBuilder body;
  body.Put(task.process).Put(parent.process);
  body.Put(task.thread.as_int()).Put(parent.thread.as_int());
  body.Put(nanos);
  return body;
}

Result<ByteBuilder> MmapBody(const TaskId& task, const PerfMapping& mapping) {
  if (mapping.build_id.size() > kBuildIdBytesMax) {
    return InvalidArgument("{:?}: a build-id of {} bytes, wanted at most {}",
                           mapping.path, mapping.build_id.size(),
                           kBuildIdBytesMax);
  }
  ByteBuilder body;
  body.Put(task.process).Put(task.thread.as_int());
  body.Put(mapping.addr.as_int()).Put(mapping.size_bytes);
  body.Put(mapping.file_offset);
  if (mapping.build_id.empty()) {
    body.PutZeros(24);  // device, inode, generation
  } else {
    body.Put(static_cast<uint8_t>(mapping.build_id.size())).PutZeros(3);
    body.PutBytes(mapping.build_id);
    body.PutZeros(kBuildIdBytesMax - mapping.build_id.size());
  }
  body.Put(mapping.prot).Put(mapping.flags).PutPaddedText(mapping.path, 8);
  return body;
}

uint16_t MmapMisc(const PerfMapping& mapping) {
  const uint32_t misc =
      PERF_RECORD_MISC_USER |
      (mapping.build_id.empty() ? 0 : PERF_RECORD_MISC_MMAP_BUILD_ID);
  return static_cast<uint16_t>(misc);
}

}  // namespace clew::bundle
