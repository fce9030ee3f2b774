#ifndef CLEW_BUNDLE_PERF_DATA_RECORD_TYPE_H_
#define CLEW_BUNDLE_PERF_DATA_RECORD_TYPE_H_

#include <cstdint>
#include <string>

// The numbers of perf's own records; those of the kernel's are PERF_RECORD_...
//
// Source: tools/perf/lib/include/perf/event.h, enum perf_user_event_type.

namespace clew::bundle {

// The first type of perf's own: those carry no sample id.
inline constexpr uint32_t kRecordUserFirst = 64;
inline constexpr uint32_t kRecordHeaderAttr = 64;
inline constexpr uint32_t kRecordTracingData = 66;
inline constexpr uint32_t kRecordHeaderBuildId = 67;
inline constexpr uint32_t kRecordIdIndex = 69;
inline constexpr uint32_t kRecordAuxtraceInfo = 70;
inline constexpr uint32_t kRecordAuxtrace = 71;
inline constexpr uint32_t kRecordTimeConv = 79;
inline constexpr uint32_t kRecordHeaderFeature = 80;
inline constexpr uint32_t kRecordCompressed = 81;
inline constexpr uint32_t kRecordCompressed2 = 83;

// Returns perf's name of a record type, the kernel's or its own: "SWITCH";
// "type 99" where it has none.
std::string RecordTypeName(uint32_t type);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_RECORD_TYPE_H_
