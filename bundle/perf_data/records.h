#ifndef CLEW_BUNDLE_PERF_DATA_RECORDS_H_
#define CLEW_BUNDLE_PERF_DATA_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "bundle/perf_data/kernel_records.h"
#include "bundle/perf_data/sample_id.h"
#include "bundle/perf_data/tsc_conversion.h"
#include "common/units.h"

// The records of Linux's perf.data that a trace needs, as plain values: the
// kernel's, and those that perf itself writes.
//
// Source: tools/perf/Documentation/perf.data-file-format.txt and
// tools/perf/util/intel-pt.h.

namespace clew::bundle {

// A MmapView that may be kept. Where the record has no build-id it is that of
// the file's features.
struct MmapRecord {
  int32_t pid = 0;
  Tid tid;
  TraceeAddr addr;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  bool executable = false;
  std::vector<std::byte> build_id;  // empty if neither has one
  std::string path;
};

struct TimeConvRecord {
  TscConversion conversion;
};

// AUXTRACE_INFO of intel_pt.
struct PtInfoRecord {
  uint64_t pmu_type = 0;
  std::optional<TscConversion> clock;  // absent: not that of the TSC
  uint64_t mtc_bit = 0;                // in attr.config: MTC packets on
  uint64_t mtc_freq_mask = 0;          // in attr.config: the MTC period
  uint64_t tsc_bit = 0;                // in attr.config
  uint64_t cyc_bit = 0;                // in attr.config
  uint64_t ctc_numerator = 0;          // TSC ticks = CTC ticks * n / d
  uint64_t ctc_denominator = 0;
  uint64_t max_nonturbo_ratio = 0;
  bool snapshot = false;
};

// AUXTRACE: a run of one core's PT bytes, borrowed from the file; or of one
// thread's, wherever it ran (see pt_stream.h).
struct AuxtraceRecord {
  uint64_t aux_offset = 0;  // of the first byte, in the stream's AUX area
  CoreId core;
  Tid tid;
  std::span<const std::byte> bytes;
};

// ID_INDEX: the events that were opened for a thread, not for a core.
struct IdIndexRecord {
  struct Entry {
    uint64_t id = 0;
    Tid thread;
  };
  std::vector<Entry> of_threads;
};

using RecordBody =
    std::variant<std::monostate, MmapRecord, CommRecord, TaskRecord,
                 SwitchRecord, AuxRecord, ItraceStartRecord, LostRecord,
                 TimeConvRecord, PtInfoRecord, AuxtraceRecord, IdIndexRecord>;

struct Record {
  uint32_t type = 0;         // enum perf_event_type, or perf's own from 64 on
  uint64_t file_offset = 0;  // of the record's header
  SampleId sample;
  // A text in it is valid while the record is visited. monostate: read over, of
  // no use to a trace.
  RecordBody body;
};

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_RECORDS_H_
