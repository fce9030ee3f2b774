#include "bundle/perf_data/sample_id.h"

#include <linux/perf_event.h>

#include <bit>

#include "common/byte_reader.h"

namespace clew::bundle {
namespace {

constexpr uint64_t kInSampleId = PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                 PERF_SAMPLE_ID | PERF_SAMPLE_CPU |
                                 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_IDENTIFIER;

// Each field has 8 bytes.
uint64_t SampleIdBytes(uint64_t sample_type) {
  return 8 * static_cast<uint64_t>(std::popcount(sample_type & kInSampleId));
}

}  // namespace

Result<uint64_t> ReadSampleId(uint64_t sample_type,
                              std::span<const std::byte> body,
                              const std::string& source, uint64_t file_offset,
                              SampleId& sample) {
  const uint64_t size = SampleIdBytes(sample_type);
  ByteReader reader(body, source, file_offset);
  if (body.size() < size) {
    return reader.Corrupt("record body has {} bytes, its sample id needs {}",
                          body.size(), size);
  }
  CLEW_RETURN_IF_ERROR(reader.Skip(body.size() - size, "record body"));
  if (sample_type & PERF_SAMPLE_TID) {
    CLEW_ASSIGN_OR_RETURN(pid, reader.Read<int32_t>("sample id pid"));
    CLEW_ASSIGN_OR_RETURN(tid, reader.Read<int32_t>("sample id tid"));
    sample.pid = pid;
    sample.tid = Tid(tid);
  }
  if (sample_type & PERF_SAMPLE_TIME) {
    CLEW_ASSIGN_OR_RETURN(time, reader.Read<uint64_t>("sample id time"));
    sample.time = PerfNanos(time);
  }
  if (sample_type & PERF_SAMPLE_ID) {
    CLEW_ASSIGN_OR_RETURN(id, reader.Read<uint64_t>("sample id id"));
    sample.id = id;
  }
  if (sample_type & PERF_SAMPLE_STREAM_ID) {
    CLEW_RETURN_IF_ERROR(reader.Skip(8, "sample id stream_id"));
  }
  if (sample_type & PERF_SAMPLE_CPU) {
    CLEW_ASSIGN_OR_RETURN(cpu, reader.Read<uint32_t>("sample id cpu"));
    CLEW_RETURN_IF_ERROR(reader.Skip(4, "sample id reserved"));
    // What perf makes up itself has -1.
    if (cpu != UINT32_MAX) {
      sample.core = CoreId(cpu);
    }
  }
  if (sample_type & PERF_SAMPLE_IDENTIFIER) {
    CLEW_ASSIGN_OR_RETURN(id, reader.Read<uint64_t>("sample id identifier"));
    sample.id = id;
  }
  return size;
}

}  // namespace clew::bundle
