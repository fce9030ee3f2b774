#ifndef CLEW_BUNDLE_PERF_DATA_PACKED_RECORDS_H_
#define CLEW_BUNDLE_PERF_DATA_PACKED_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bundle/zstd/unzstd.h"
#include "common/byte_reader.h"
#include "common/result.h"

namespace clew::bundle {

// The records that `perf record -z` packed. The bodies of a file's COMPRESSED
// records, one behind another, are one zstd stream of records, any of which
// may lie across two of them. Memory: one record and a chunk.
//
// Source: linux/tools/perf/util/session.c,
// perf_session__process_compressed_event.
class PackedRecords {
 public:
  // Most bytes that may come out of a file's.
  static constexpr uint64_t kBytesMax = uint64_t{1} << 32;

  // `name` of the file, for messages.
  explicit PackedRecords(const std::string& name,
                         uint64_t bytes_max = kBytesMax);

  // Unpacks the body of one COMPRESSED record, at `file_offset`, and calls
  // `take` with a reader over each record that is whole, header included.
  // Fails with kCorruptInput if the body is not zstd or a record has an
  // impossible size, and with kLimit after bytes_max bytes.
  using Taker = std::function<Status(ByteReader& record)>;
  [[nodiscard]] Status Unpack(std::span<const std::byte> body,
                              uint64_t file_offset, const Taker& take);
  // Fails with kCorruptInput if the last record is cut off. REQUIRES: the last
  // COMPRESSED record was unpacked.
  [[nodiscard]] Status Finish() const;

 private:
  Status TakeWhole(const Taker& take);

  std::string name_;
  bundle::ZstdStream stream_;
  std::vector<std::byte> waiting_;  // the beginning of the next record
  uint64_t offset_ = 0;             // of waiting_, in what comes out
};

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_PACKED_RECORDS_H_
