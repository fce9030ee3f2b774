#include "recorder/perf/events.h"

#include "bundle/perf_data/record_type.h"
#include "bundle/perf_data/sample_id.h"
#include "common/byte_reader.h"

namespace clew::recorder::perf {
namespace {

using bundle::kSampleIdType;
using bundle::OwnSampleId;
using bundle::ParseKernelRecord;
using bundle::ReadSampleId;
using bundle::RecordTypeName;
using bundle::SampleId;

// Of readers within one record, whose place in the ring comes before what they
// say.
constexpr const char* kNoSource = "";

// All are there: kSampleIdType asks for them.
OwnSampleId OwnOf(const SampleId& id) {
  return {.process = id.pid.value_or(0),
          .thread = id.tid.value_or(Tid(0)),
          .time = id.time.value_or(PerfNanos(0)),
          .core = id.core.value_or(CoreId(0)),
          .event_id = id.id.value_or(0)};
}

Result<Event> ParseInRecord(const RecordView& record) {
  ByteReader whole(record.bytes, kNoSource);
  CLEW_RETURN_IF_ERROR(whole.Skip(sizeof(perf_event_header), "record header"));
  const uint64_t body_offset = whole.offset();
  CLEW_ASSIGN_OR_RETURN(bytes,
                        whole.ReadBytes(whole.remaining_bytes(), "body"));
  SampleId id;
  CLEW_ASSIGN_OR_RETURN(
      id_bytes, ReadSampleId(kSampleIdType, bytes, kNoSource, body_offset, id));
  ByteReader fields(bytes.first(bytes.size() - id_bytes), kNoSource,
                    body_offset);
  CLEW_ASSIGN_OR_RETURN(body,
                        ParseKernelRecord(record.type, record.misc, fields));
  return Event{.id = OwnOf(id), .body = body};
}

}  // namespace

Result<Event> ParseEvent(const RecordView& record, std::string_view name) {
  auto event = ParseInRecord(record);
  if (!event) {
    return CorruptInput("{}: data ring: position {:#x}: {} record: {}", name,
                        record.position, RecordTypeName(record.type),
                        event.error().message);
  }
  return event;
}

}  // namespace clew::recorder::perf
