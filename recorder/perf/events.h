#ifndef CLEW_RECORDER_PERF_EVENTS_H_
#define CLEW_RECORDER_PERF_EVENTS_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "bundle/perf_data/own_events.h"
#include "common/result.h"
#include "common/units.h"
#include "recorder/perf/data_ring.h"

namespace clew::recorder::perf {

// Bytes [offset, offset + size) of the AUX ring were written.
struct AuxEvent {
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
  uint64_t flags = 0;  // PERF_AUX_FLAG_...
};
struct LostEvent {  // records that found no room in the data ring
  uint64_t event_id = 0;
  uint64_t count = 0;
};
struct LostSamplesEvent {  // that the PMU dropped
  uint64_t count = 0;
};
struct ItraceStartEvent {
  int32_t process = 0;
  Tid thread;
};
struct SwitchEvent {  // of the thread in SampleId
  bool out = false;
  bool preempted = false;  // out, while still able to run
};
struct CommEvent {
  int32_t process = 0;
  Tid thread;
  std::string_view name;
  bool exec = false;  // set by execve
};
struct TaskEvent {  // FORK, where `thread` is new, or EXIT, where it ends
  bool exit = false;
  int32_t process = 0;
  Tid thread;
  int32_t parent_process = 0;
  Tid parent_thread;
};
struct MmapEvent {  // MMAP2
  int32_t process = 0;
  Tid thread;
  TraceeAddr addr;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  uint32_t prot = 0;                    // PROT_...
  uint32_t flags = 0;                   // MAP_...
  std::span<const std::byte> build_id;  // empty where the kernel gave none
  std::string_view path;
};
struct OtherEvent {
  uint32_t type = 0;
};

// Texts and spans in it point into the record.
struct Event {
  bundle::OwnSampleId id;
  std::variant<OtherEvent, AuxEvent, LostEvent, LostSamplesEvent,
               ItraceStartEvent, SwitchEvent, CommEvent, TaskEvent, MmapEvent>
      body;
};

// Reads a record of an event with kSampleIdType. Allocates only for errors.
//
// kCorruptInput, with `name` and the record's position: too short for its type,
// a text without end, a build-id longer than 20 bytes.
[[nodiscard]] Result<Event> ParseEvent(const RecordView& record,
                                       std::string_view name);

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_EVENTS_H_
