#ifndef CLEW_BUNDLE_PERF_DATA_RECORD_PARSER_H_
#define CLEW_BUNDLE_PERF_DATA_RECORD_PARSER_H_

#include <cstdint>

#include "bundle/perf_data/records.h"
#include "common/byte_reader.h"
#include "common/result.h"

namespace clew::bundle {

// enum perf_event_type and enum perf_user_event_type.
inline constexpr uint32_t kRecordMmap = 1;
inline constexpr uint32_t kRecordLost = 2;
inline constexpr uint32_t kRecordComm = 3;
inline constexpr uint32_t kRecordExit = 4;
inline constexpr uint32_t kRecordFork = 7;
inline constexpr uint32_t kRecordSample = 9;
inline constexpr uint32_t kRecordMmap2 = 10;
inline constexpr uint32_t kRecordAux = 11;
inline constexpr uint32_t kRecordItraceStart = 12;
inline constexpr uint32_t kRecordLostSamples = 13;
inline constexpr uint32_t kRecordSwitch = 14;
inline constexpr uint32_t kRecordSwitchCpuWide = 15;
inline constexpr uint32_t kRecordHeaderAttr = 64;
inline constexpr uint32_t kRecordTracingData = 66;
inline constexpr uint32_t kRecordHeaderBuildId = 67;
inline constexpr uint32_t kRecordIdIndex = 69;
inline constexpr uint32_t kRecordHeaderFeature = 80;
inline constexpr uint32_t kRecordAuxtraceInfo = 70;
inline constexpr uint32_t kRecordAuxtrace = 71;
inline constexpr uint32_t kRecordTimeConv = 79;
inline constexpr uint32_t kRecordCompressed = 81;
inline constexpr uint32_t kRecordCompressed2 = 83;
// The first type of perf's own: those carry no sample id.
inline constexpr uint32_t kRecordUserFirst = 64;

struct RecordHeader {
  uint32_t type = 0;
  uint16_t misc = 0;
  uint16_t size = 0;  // with the header's own 8 bytes
};
inline constexpr uint64_t kRecordHeaderBytes = 8;

[[nodiscard]] Result<RecordHeader> ReadRecordHeader(ByteReader& reader);

// Reads the fields of a record. `body` is at the first byte after the header
// and ends before the sample id. Returns monostate for a type that we do not
// use, and for AUXTRACE, whose bytes lie outside the record (see PerfData).
[[nodiscard]] Result<RecordBody> ParseRecordBody(const RecordHeader& header,
                                                 ByteReader& body);

// Reads the fields of AUXTRACE; `size_untrusted` is how many PT bytes follow.
[[nodiscard]] Result<AuxtraceRecord> ParseAuxtrace(ByteReader& body,
                                                   uint64_t& size_untrusted);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_RECORD_PARSER_H_
