#ifndef CLEW_BUNDLE_PERF_DATA_PERF_DATA_H_
#define CLEW_BUNDLE_PERF_DATA_PERF_DATA_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bundle/perf_data/attr.h"
#include "bundle/perf_data/features.h"
#include "bundle/perf_data/record_parser.h"
#include "bundle/perf_data/records.h"
#include "common/os/file.h"
#include "common/result.h"

namespace clew::bundle {

class PackedRecords;

// Reads Linux's perf.data, in file format (a header with sections) and in pipe
// format (a stream of records). Every byte is suspect: whatever breaks the
// format is kCorruptInput with file, offset, field, what was found and wanted.
//
// Fails with kUnsupported if the file is big-endian or of a version before
// PERFILE2, and with kLimit if the records that `perf record -z` compressed are
// more than PackedRecords::kBytesMax.
//
// The PT bytes are borrowed from the mapped file, never copied. Little-endian
// x86-64 files only. Not thread-safe.
class PerfData {
 public:
  [[nodiscard]] static Result<PerfData> Open(const std::string& path);
  // Reads bytes in memory, which must outlive the object. `name` is for
  // messages.
  [[nodiscard]] static Result<PerfData> Over(std::span<const std::byte> bytes,
                                             const std::string& name);

  // Calls `visit` for each record in file order, and stops at the first Error,
  // its own or the visitor's. Reading stays within the bytes of the file. The
  // records inside a COMPRESSED record come after it; their file_offset is that
  // in the decompressed bytes of all such records.
  using Visitor = std::function<Status(const Record&)>;
  [[nodiscard]] Status ForEachRecord(const Visitor& visit);

  // The attrs seen so far: all in file format, after ForEachRecord in pipe
  // format.
  const std::vector<EventAttr>& attrs() const { return attrs_; }
  // Seen so far as with attrs(). perf writes them last, so that a recording
  // that was killed lacks them. Mappings whose record has no build-id get
  // theirs from here.
  const PerfFeatures& features() const { return features_; }
  // Features of a file that are damaged, and so not in features(): what is
  // wrong with each. (In pipe format a damaged one is an Error.)
  const std::vector<std::string>& feature_faults() const {
    return feature_faults_;
  }
  const std::string& name() const { return name_; }
  bool is_pipe() const { return is_pipe_; }

 private:
  PerfData(std::span<const std::byte> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}
  Status ReadFileHeader();
  Status ReadHeader(ByteReader& reader);
  Status ReadAttrSection(uint64_t offset, uint64_t size, uint64_t attr_size);
  void ReadFeatureSections();
  Status ReadFeatureSection(uint32_t feature, uint64_t index);
  Result<std::vector<uint64_t>> ReadIds(uint64_t offset, uint64_t size);
  Result<ByteReader> ReaderOf(uint64_t offset, uint64_t size,
                              std::string_view section) const;
  Result<Record> ReadRecord(ByteReader& reader);
  Result<Record> ReadAuxtrace(ByteReader& reader, ByteReader& body,
                              Record record);
  Status ReadPacked(const RecordHeader& header, ByteReader& body);
  Status VisitPacked(PackedRecords& packed, const Visitor& visit);
  Status ReadAttrRecord(ByteReader& body);
  Status ReadOwnRecord(const RecordHeader& header, ByteReader& reader,
                       ByteReader& body);

  // The body of a COMPRESSED record.
  struct PackedBody {
    std::span<const std::byte> bytes;
    uint64_t file_offset = 0;
  };

  std::optional<MappedFile> file_;
  std::span<const std::byte> bytes_;
  std::string name_;
  std::vector<EventAttr> attrs_;
  PerfFeatures features_;
  std::vector<std::string> feature_faults_;
  PackedBody packed_;  // of the record that was read last
  bool is_pipe_ = false;
  uint64_t data_offset_ = 0;
  uint64_t data_size_ = 0;
};

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_PERF_DATA_H_
