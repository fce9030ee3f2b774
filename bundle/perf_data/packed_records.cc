#include "bundle/perf_data/packed_records.h"

#include "bundle/perf_data/record_parser.h"

namespace clew::bundle {

PackedRecords::PackedRecords(const std::string& name, uint64_t bytes_max)
    : name_(name + ", decompressed"), stream_(name, bytes_max) {}

Status PackedRecords::Unpack(std::span<const std::byte> body,
                             uint64_t file_offset, const Taker& take) {
  return stream_.Unpack(
      body, file_offset, [&](std::span<const std::byte> chunk) {
        waiting_.insert(waiting_.end(), chunk.begin(), chunk.end());
        return TakeWhole(take);
      });
}

Status PackedRecords::TakeWhole(const Taker& take) {
  std::span<const std::byte> rest = waiting_;
  uint64_t taken = 0;
  while (rest.size() >= kRecordHeaderBytes) {
    ByteReader peek(rest, name_, offset_ + taken);
    CLEW_ASSIGN_OR_RETURN(header, ReadRecordHeader(peek));
    if (header.size > rest.size()) {
      break;
    }
    ByteReader record(rest.first(header.size), name_, offset_ + taken);
    CLEW_RETURN_IF_ERROR(take(record));
    taken += header.size;
    rest = rest.subspan(header.size);
  }
  waiting_.erase(waiting_.begin(),
                 waiting_.begin() + static_cast<ptrdiff_t>(taken));
  offset_ += taken;
  return {};
}

Status PackedRecords::Finish() const {
  if (waiting_.empty()) {
    return {};
  }
  return CorruptInput(
      "{}: offset {:#x}: the last record is cut off after {} "
      "bytes",
      name_, offset_, waiting_.size());
}

}  // namespace clew::bundle
