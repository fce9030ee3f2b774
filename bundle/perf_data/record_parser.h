#ifndef CLEW_BUNDLE_PERF_DATA_RECORD_PARSER_H_
#define CLEW_BUNDLE_PERF_DATA_RECORD_PARSER_H_

#include <cstdint>

#include "bundle/perf_data/records.h"
#include "common/byte_reader.h"
#include "common/result.h"

namespace clew::bundle {

struct RecordHeader {
  uint32_t type = 0;
  uint16_t misc = 0;
  uint16_t size = 0;  // with the header's own 8 bytes
};
inline constexpr uint64_t kRecordHeaderBytes = 8;

[[nodiscard]] Result<RecordHeader> ReadRecordHeader(ByteReader& reader);

// Reads the fields of a record: of the kernel's (ParseKernelRecord), or of
// perf's own. `body` is at the first byte after the header and ends before the
// sample id. Returns monostate for a type that we do not use, and for AUXTRACE,
// whose bytes lie outside the record (see PerfData).
[[nodiscard]] Result<RecordBody> ParseRecordBody(const RecordHeader& header,
                                                 ByteReader& body);

// Reads the fields of AUXTRACE; `size_untrusted` is how many PT bytes follow.
[[nodiscard]] Result<AuxtraceRecord> ParseAuxtrace(ByteReader& body,
                                                   uint64_t& size_untrusted);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_RECORD_PARSER_H_
