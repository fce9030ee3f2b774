#ifndef CLEW_BUNDLE_PERF_DATA_FILE_FORMAT_H_
#define CLEW_BUNDLE_PERF_DATA_FILE_FORMAT_H_

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bundle/perf_data/tsc_conversion.h"
#include "common/byte_builder.h"
#include "common/round_up.h"
#include "common/units.h"

// The parts of a perf.data file that are not from the kernel.
//
// Source: Linux, tools/perf/Documentation/perf.data-file-format.txt, and
// tools/perf/util/header.h, struct perf_file_header.

namespace clew::bundle {

struct PerfFileEvent {
  perf_event_attr attr = {};  // its size field is set by the writer
  std::string name;           // "dummy:u"
  std::vector<uint64_t> ids;  // PERF_EVENT_IOC_ID, one for each that was opened
};

// What the feature sections say, and which events there are.
struct PerfFileHead {
  std::vector<PerfFileEvent> events;
  std::string host_name;
  std::string os_release;
  std::string version;  // of the program that writes the file
  std::string cpu_description;
  std::string cpu_id;  // as perf has it: vendor, family, model, stepping
  uint32_t cores_present = 1;
  uint32_t cores_online = 1;
  std::vector<std::string> command;
  uint32_t pt_type = 0;  // of the intel_pt PMU; 0: no PT in the file
};

// AUXTRACE_INFO of intel_pt (tools/perf/util/intel-pt.h, from
// INTEL_PT_PMU_TYPE on). Bits are masks of perf_event_attr::config; 0 where
// hardware has no such field.
struct PtInfo {
  uint32_t pmu_type = 0;
  std::optional<TscConversion> clock;  // absent: not that of the TSC
  uint64_t tsc_bit = 0;
  uint64_t no_return_compression_bit = 0;
  // Threads are told by SWITCH records (2) or SWITCH_CPU_WIDE ones (3).
  uint64_t have_sched_switch = 2;
  bool snapshot = false;
  uint64_t mtc_bit = 0;
  uint64_t mtc_period_bits = 0;
  uint32_t tsc_ctc_numerator = 0;
  uint32_t tsc_ctc_denominator = 0;
  uint64_t cyc_bit = 0;
  uint64_t max_nonturbo_ratio = 0;
  std::string filter;  // of addresses, as the kernel got it; empty: none
};

inline constexpr uint64_t kAuxtraceHeadBytes = 48;  // of an AUXTRACE record
// What PT takes up behind it.
constexpr uint64_t PaddedTraceBytes(uint64_t pt_bytes) {
  return RoundUp(pt_bytes, 8);
}

// A writer of records writes them when it has so many.
inline constexpr size_t kRecordBufferBytes = size_t{256} << 10;

// Header, ids and attributes: everything before the records.
ByteBuilder BuildHead(const PerfFileHead& head, uint64_t data_bytes);

// Feature sections: everything behind the records, which end at `data_end`.
// `auxtrace_offsets` is where in the file each AUXTRACE record begins.
ByteBuilder BuildFeatures(const PerfFileHead& head, uint64_t data_end,
                          std::span<const uint64_t> auxtrace_offsets);

// AUXTRACE_INFO and TIME_CONV, which come before all other records.
ByteBuilder BuildPtInfo(const PtInfo& info);
ByteBuilder BuildTimeConv(const TscConversion& clock);

// The head of an AUXTRACE record, behind which `bytes` of PT follow.
struct AuxtraceHead {
  uint64_t bytes = 0;  // a multiple of 8
  uint64_t aux_offset = 0;
  // A TSC value about that of the bytes: PT's packets lack its upper byte.
  uint64_t reference = 0;
  uint32_t core = 0;
};
ByteBuilder BuildAuxtraceHead(const AuxtraceHead& head);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_FILE_FORMAT_H_
