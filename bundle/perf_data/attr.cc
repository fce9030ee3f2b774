#include "bundle/perf_data/attr.h"

#include <algorithm>
#include <cstring>

namespace clew::bundle {
namespace {

// linux/perf_event.h, enum perf_event_sample_format.
constexpr uint64_t kSampleTid = 1u << 1;
constexpr uint64_t kSampleTime = 1u << 2;
constexpr uint64_t kSampleId = 1u << 6;
constexpr uint64_t kSampleCpu = 1u << 7;
constexpr uint64_t kSampleStreamId = 1u << 9;
constexpr uint64_t kSampleIdentifier = 1u << 16;
constexpr uint64_t kInSampleId = kSampleTid | kSampleTime | kSampleId |
                                 kSampleCpu | kSampleStreamId |
                                 kSampleIdentifier;
constexpr uint64_t kFlagSampleIdAll = 1u << 18;
// PERF_ATTR_SIZE_VER0; no attr is smaller.
constexpr uint32_t kAttrSizeMin = 64;
constexpr uint32_t kAttrSizeMax = 4096;

uint64_t SampleIdBytes(const EventAttr& attr) {
  if (!attr.sample_id_all) {
    return 0;
  }
  uint64_t fields = 0;
  for (uint64_t bits = attr.sample_type & kInSampleId; bits != 0;
       bits &= bits - 1) {
    ++fields;
  }
  return 8 * fields;
}

}  // namespace

Result<EventAttr> ReadEventAttr(ByteReader& reader) {
  EventAttr attr;
  CLEW_ASSIGN_OR_RETURN(type, reader.Read<uint32_t>("attr.type"));
  CLEW_ASSIGN_OR_RETURN(size, reader.Read<uint32_t>("attr.size"));
  if (size < kAttrSizeMin || size > kAttrSizeMax) {
    return reader.Corrupt("attr.size is {}, wanted {}..{}", size, kAttrSizeMin,
                          kAttrSizeMax);
  }
  CLEW_ASSIGN_OR_RETURN(config, reader.Read<uint64_t>("attr.config"));
  CLEW_RETURN_IF_ERROR(reader.Skip(8, "attr.sample_period"));
  CLEW_ASSIGN_OR_RETURN(sample_type, reader.Read<uint64_t>("attr.sample_type"));
  CLEW_RETURN_IF_ERROR(reader.Skip(8, "attr.read_format"));
  CLEW_ASSIGN_OR_RETURN(flags, reader.Read<uint64_t>("attr flags"));
  CLEW_RETURN_IF_ERROR(reader.Skip(size - 48, "attr's other fields"));
  attr.type = type;
  attr.config = config;
  attr.sample_type = sample_type;
  attr.sample_id_all = (flags & kFlagSampleIdAll) != 0;
  return attr;
}

const EventAttr* AttrOfRecord(const std::vector<EventAttr>& attrs,
                              std::span<const std::byte> body) {
  if (attrs.empty()) {
    return nullptr;
  }
  const EventAttr& first = attrs.front();
  if ((first.sample_type & kSampleIdentifier) == 0 || body.size() < 8) {
    return &first;
  }
  uint64_t id = 0;
  std::memcpy(&id, body.data() + body.size() - 8, 8);
  for (const EventAttr& attr : attrs) {
    if (std::find(attr.ids.begin(), attr.ids.end(), id) != attr.ids.end()) {
      return &attr;
    }
  }
  return &first;
}

Result<uint64_t> ReadSampleId(const EventAttr& attr,
                              std::span<const std::byte> body,
                              const std::string& source, uint64_t file_offset,
                              SampleId& sample) {
  const uint64_t size = SampleIdBytes(attr);
  if (body.size() < size) {
    return CorruptInput(
        "{}: offset {:#x}: record body has {} bytes, its sample id needs {}",
        source, file_offset, body.size(), size);
  }
  if (size == 0) {
    return 0u;
  }
  const uint64_t before = body.size() - size;
  ByteReader reader(body.subspan(before), source, file_offset + before);
  if (attr.sample_type & kSampleTid) {
    CLEW_ASSIGN_OR_RETURN(pid, reader.Read<uint32_t>("sample id pid"));
    CLEW_ASSIGN_OR_RETURN(tid, reader.Read<uint32_t>("sample id tid"));
    sample.pid = static_cast<int32_t>(pid);
    sample.tid = Tid(static_cast<int32_t>(tid));
  }
  if (attr.sample_type & kSampleTime) {
    CLEW_ASSIGN_OR_RETURN(time, reader.Read<uint64_t>("sample id time"));
    sample.time = PerfNanos(time);
  }
  if (attr.sample_type & kSampleId) {
    CLEW_ASSIGN_OR_RETURN(id, reader.Read<uint64_t>("sample id id"));
    sample.id = id;
  }
  if (attr.sample_type & kSampleStreamId) {
    CLEW_RETURN_IF_ERROR(reader.Skip(8, "sample id stream_id"));
  }
  if (attr.sample_type & kSampleCpu) {
    CLEW_ASSIGN_OR_RETURN(cpu, reader.Read<uint32_t>("sample id cpu"));
    CLEW_RETURN_IF_ERROR(reader.Skip(4, "sample id reserved"));
    // What perf makes up itself has -1.
    if (cpu != UINT32_MAX) {
      sample.core = CoreId(cpu);
    }
  }
  if (attr.sample_type & kSampleIdentifier) {
    CLEW_ASSIGN_OR_RETURN(id, reader.Read<uint64_t>("sample id identifier"));
    sample.id = id;
  }
  return size;
}

}  // namespace clew::bundle
