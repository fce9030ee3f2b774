#ifndef CLEW_BUNDLE_PERF_DATA_PERF_DATA_HEADER_H_
#define CLEW_BUNDLE_PERF_DATA_PERF_DATA_HEADER_H_

#include <cstdint>

#include "bundle/perf_data/file_format.h"
#include "bundle/perf_data/perf_data_writer.h"
#include "common/byte_builder.h"

// The header and the first records of the perf.data of a software source.

namespace clew::bundle {

// Type of the intel_pt event, as sysfs would tell it, and of its companion, a
// software event that carries the sideband.
inline constexpr uint32_t kIntelPtType = 8;

// Identifier of the event on a core. Non-zero, different for each.
uint64_t IntelPtEventId(CoreId core);
uint64_t SidebandEventId(const PerfDataConfig& config, CoreId core);

PerfFileHead HeadOf(const PerfDataConfig& config);

// AUXTRACE_INFO and TIME_CONV, which come before all other records.
ByteBuilder BuildFirstRecords(const PerfDataConfig& config);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_PERF_DATA_HEADER_H_
