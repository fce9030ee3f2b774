#ifndef CLEW_BUNDLE_PERF_DATA_OWN_EVENTS_H_
#define CLEW_BUNDLE_PERF_DATA_OWN_EVENTS_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>

#include "common/units.h"

// Events as ours are: what they ask the kernel for, and what the kernel then
// puts behind each of their records.

namespace clew::bundle {

// attr.sample_id_all with this sample_type (perf_event.h, struct sample_id).
inline constexpr uint64_t kSampleIdType = PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                          PERF_SAMPLE_CPU |
                                          PERF_SAMPLE_IDENTIFIER;
inline constexpr size_t kSampleIdBytes = 32;

// Who, when and where of a record: a SampleId that has all of kSampleIdType.
struct OwnSampleId {
  int32_t process = 0;  // -1 where the task is already gone
  Tid thread;
  PerfNanos time;
  CoreId core;
  uint64_t event_id = 0;  // PERF_EVENT_IOC_ID
};

// Returns the attributes that all our events share: kSampleIdType behind each
// record, on perf's own clock (use_clockid is not set), which
// perf_event_mmap_page converts to TSC. The event starts disabled.
perf_event_attr BaseAttr();

// The software event that brings what is needed to understand PT: context
// switches, mmaps with build-ids, names, forks and exits. A BaseAttr.
perf_event_attr SidebandRecordsAttr();

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_OWN_EVENTS_H_
