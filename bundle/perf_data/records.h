#ifndef CLEW_BUNDLE_PERF_DATA_RECORDS_H_
#define CLEW_BUNDLE_PERF_DATA_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "bundle/perf_data/tsc_conversion.h"
#include "common/units.h"

// The records of Linux's perf.data that a trace needs, as plain values.
//
// Source: linux/perf_event.h (enum perf_event_type) for kernel records; for
// those perf itself writes, tools/perf/Documentation/perf.data-file-format.txt
// and tools/perf/util/intel-pt.h.

namespace clew::bundle {

// What the kernel appends to its records (attr.sample_id_all). A field is
// absent where attr.sample_type did not ask for it.
struct SampleId {
  std::optional<int32_t> pid;
  std::optional<Tid> tid;
  std::optional<PerfNanos> time;
  std::optional<CoreId> core;
  std::optional<uint64_t> id;  // of the event
};

// MMAP and MMAP2: a mapping that exists from now on. MMAP does not say how it
// is protected: executable, unless its misc bit says data.
struct MmapRecord {
  int32_t pid = 0;
  Tid tid;
  TraceeAddr addr;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  bool executable = false;
  std::vector<std::byte> build_id;  // empty if the record has none
  std::string path;
};

struct CommRecord {
  int32_t pid = 0;
  Tid tid;
  std::string name;
  bool exec = false;
};

// FORK and EXIT.
struct TaskRecord {
  bool exited = false;
  int32_t pid = 0;
  int32_t parent_pid = 0;
  Tid tid;
  Tid parent_tid;
  PerfNanos time;
};

// SWITCH and SWITCH_CPU_WIDE. SampleId::tid is the thread that goes out or
// comes in.
struct SwitchRecord {
  bool out = false;
  std::optional<Tid> other;  // CPU_WIDE: who comes in, or went out
};

struct AuxRecord {
  uint64_t aux_offset = 0;
  uint64_t size_bytes = 0;
  bool truncated = false;
  bool overwrite = false;
};

struct ItraceStartRecord {
  int32_t pid = 0;
  Tid tid;
};

// LOST and LOST_SAMPLES.
struct LostRecord {
  uint64_t count = 0;
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
  RecordBody body;  // monostate: read over, of no use to a trace
};

// perf's name of a record type, "SWITCH"; "type 99" where it has none.
std::string RecordTypeName(uint32_t type);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_RECORDS_H_
