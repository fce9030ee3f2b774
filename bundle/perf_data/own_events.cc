#include "bundle/perf_data/own_events.h"

namespace clew::bundle {

perf_event_attr BaseAttr() {
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  attr.sample_period = 1;  // perf_event_open refuses AUX wake-ups without
  // IP is in no sample_id; perf wants it of an event to print what PT tells.
  attr.sample_type = kSampleIdType | PERF_SAMPLE_IP;
  attr.sample_id_all = 1;
  attr.disabled = 1;
  attr.exclude_hv = 1;
  return attr;
}

perf_event_attr SidebandRecordsAttr() {
  perf_event_attr attr = BaseAttr();
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.exclude_kernel = 1;
  attr.context_switch = 1;
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.build_id = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  return attr;
}

}  // namespace clew::bundle
