#ifndef CLEW_RECORDER_PERF_EVENTS_H_
#define CLEW_RECORDER_PERF_EVENTS_H_

#include <string_view>

#include "bundle/perf_data/kernel_records.h"
#include "bundle/perf_data/own_events.h"
#include "common/result.h"
#include "recorder/perf/data_ring.h"

namespace clew::recorder::perf {

struct Event {
  bundle::OwnSampleId id;
  bundle::KernelRecord body;  // texts and spans in it point into the record
};

// Reads a record of an event with kSampleIdType. Allocates only for errors.
//
// Fails as ParseKernelRecord does, or where the record is too short for its
// sample id, with `name`, the record's position and type.
[[nodiscard]] Result<Event> ParseEvent(const RecordView& record,
                                       std::string_view name);

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_EVENTS_H_
