#include "recorder/perf/events.h"

#include <cstring>
#include <optional>

#include "common/build_id.h"

namespace clew::recorder::perf {
namespace {

using bundle::kSampleIdBytes;
using bundle::OwnSampleId;

// Takes fields from the front; a field that is not there is zero and makes
// ok() false for good.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T Take() {
    T value{};
    const auto bytes = TakeBytes(sizeof(T));
    if (ok_) {
      std::memcpy(&value, bytes.data(), sizeof(T));
    }
    return value;
  }
  std::span<const std::byte> TakeBytes(size_t count) {
    ok_ = ok_ && count <= bytes_.size();
    if (!ok_) {
      return {};
    }
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  // Up to the first NUL, which must be there.
  std::string_view TakeText() {
    ok_ = ok_ && !bytes_.empty();
    if (!ok_) {
      return {};
    }
    const auto* text = reinterpret_cast<const char*>(bytes_.data());
    const size_t length = strnlen(text, bytes_.size());
    ok_ = length < bytes_.size();
    return ok_ ? std::string_view(text, length) : std::string_view();
  }
  void Fail() { ok_ = false; }
  bool ok() const { return ok_; }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

OwnSampleId TakeSampleId(Fields& fields) {
  OwnSampleId id;
  id.process = fields.Take<int32_t>();
  id.thread = Tid(fields.Take<int32_t>());
  id.time = PerfNanos(fields.Take<uint64_t>());
  id.core = CoreId(fields.Take<uint32_t>());
  (void)fields.Take<uint32_t>();  // reserved
  id.event_id = fields.Take<uint64_t>();
  return id;
}

AuxEvent TakeAux(Fields& fields) {
  AuxEvent aux;
  aux.offset_bytes = fields.Take<uint64_t>();
  aux.size_bytes = fields.Take<uint64_t>();
  aux.flags = fields.Take<uint64_t>();
  return aux;
}

LostEvent TakeLost(Fields& fields) {
  LostEvent lost;
  lost.event_id = fields.Take<uint64_t>();
  lost.count = fields.Take<uint64_t>();
  return lost;
}

CommEvent TakeComm(Fields& fields, uint16_t misc) {
  CommEvent comm;
  comm.process = fields.Take<int32_t>();
  comm.thread = Tid(fields.Take<int32_t>());
  comm.name = fields.TakeText();
  comm.exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
  return comm;
}

TaskEvent TakeTask(Fields& fields, bool exit) {
  TaskEvent task;
  task.exit = exit;
  task.process = fields.Take<int32_t>();
  task.parent_process = fields.Take<int32_t>();
  task.thread = Tid(fields.Take<int32_t>());
  task.parent_thread = Tid(fields.Take<int32_t>());
  (void)fields.Take<uint64_t>();  // time, as in the SampleId
  return task;
}

std::span<const std::byte> TakeBuildId(Fields& fields) {
  const auto size_untrusted = fields.Take<uint8_t>();
  (void)fields.TakeBytes(3);  // reserved
  const auto bytes = fields.TakeBytes(kBuildIdBytesMax);
  if (!fields.ok() || size_untrusted > kBuildIdBytesMax) {
    fields.Fail();
    return {};
  }
  return bytes.first(size_untrusted);
}

MmapEvent TakeMmap2(Fields& fields, uint16_t misc) {
  MmapEvent mmap;
  mmap.process = fields.Take<int32_t>();
  mmap.thread = Tid(fields.Take<int32_t>());
  mmap.addr = TraceeAddr(fields.Take<uint64_t>());
  mmap.size_bytes = fields.Take<uint64_t>();
  mmap.file_offset = fields.Take<uint64_t>();
  if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
    mmap.build_id = TakeBuildId(fields);
  } else {
    (void)fields.TakeBytes(24);  // device, inode, generation
  }
  mmap.prot = fields.Take<uint32_t>();
  mmap.flags = fields.Take<uint32_t>();
  mmap.path = fields.TakeText();
  return mmap;
}

void TakeBody(Fields& fields, const RecordView& record, Event& event) {
  switch (record.type) {
    case PERF_RECORD_AUX:
      event.body = TakeAux(fields);
      return;
    case PERF_RECORD_LOST:
      event.body = TakeLost(fields);
      return;
    case PERF_RECORD_LOST_SAMPLES:
      event.body = LostSamplesEvent{.count = fields.Take<uint64_t>()};
      return;
    case PERF_RECORD_ITRACE_START: {
      ItraceStartEvent start{.process = fields.Take<int32_t>(), .thread = {}};
      start.thread = Tid(fields.Take<int32_t>());
      event.body = start;
      return;
    }
    case PERF_RECORD_SWITCH_CPU_WIDE:
      (void)fields.TakeBytes(8);  // the other thread: its own record tells
      [[fallthrough]];
    case PERF_RECORD_SWITCH:
      event.body = SwitchEvent{
          .out = (record.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0,
          .preempted =
              (record.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0};
      return;
    case PERF_RECORD_COMM:
      event.body = TakeComm(fields, record.misc);
      return;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
      event.body = TakeTask(fields, record.type == PERF_RECORD_EXIT);
      return;
    case PERF_RECORD_MMAP2:
      event.body = TakeMmap2(fields, record.misc);
      return;
    default:
      event.body = OtherEvent{.type = record.type};
  }
}

}  // namespace

Result<Event> ParseEvent(const RecordView& record, std::string_view name) {
  const size_t size = record.bytes.size();
  const auto corrupt = [&](std::string_view what) {
    return CorruptInput("{}: data ring: position {:#x}: record of type {}: {}",
                        name, record.position, record.type, what);
  };
  if (size < sizeof(perf_event_header) + kSampleIdBytes) {
    return corrupt("too short for its sample_id");
  }
  Fields tail(record.bytes.last(kSampleIdBytes));
  Event event{.id = TakeSampleId(tail), .body = {}};
  Fields fields(
      record.bytes.subspan(sizeof(perf_event_header),
                           size - sizeof(perf_event_header) - kSampleIdBytes));
  TakeBody(fields, record, event);
  if (!fields.ok()) {
    return corrupt("its fields do not fit in its size");
  }
  return event;
}

}  // namespace clew::recorder::perf
