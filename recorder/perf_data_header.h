#ifndef CLEW_RECORDER_PERF_DATA_HEADER_H_
#define CLEW_RECORDER_PERF_DATA_HEADER_H_

#include <cstdint>
#include <span>

#include "recorder/byte_builder.h"
#include "recorder/perf_data_writer.h"

// The parts of a perf.data file that are no records.
//
// Source: Linux, tools/perf/Documentation/perf.data-file-format.txt, and
// tools/perf/util/header.h, struct perf_file_header.

namespace clew::recorder {

// Type of the intel_pt event, as sysfs would tell it, and of its companion, a
// software event that carries the sideband.
inline constexpr uint32_t kIntelPtType = 8;

// What every record ends with, besides the time: perf_event.h, struct sample_id
// of TID | TIME | CPU | IDENTIFIER.
inline constexpr size_t kSampleIdBytes = 32;

// Identifier of the event on a core. Non-zero, different for each.
uint64_t IntelPtEventId(CoreId core);
uint64_t SidebandEventId(const PerfDataConfig& config, CoreId core);

// Header, ids and attributes: everything before the records.
ByteBuilder BuildHead(const PerfDataConfig& config, uint64_t data_bytes);

// Feature sections: everything behind the records, which end at `data_end`.
// `auxtrace_offsets` is where in the file each AUXTRACE record begins.
ByteBuilder BuildFeatures(const PerfDataConfig& config, uint64_t data_end,
                          std::span<const uint64_t> auxtrace_offsets);

inline constexpr uint64_t kAuxtraceHeadBytes = 48;  // of an AUXTRACE record

// AUXTRACE_INFO and TIME_CONV, which come before all other records.
ByteBuilder BuildFirstRecords(const PerfDataConfig& config);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PERF_DATA_HEADER_H_
