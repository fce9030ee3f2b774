#include "bundle/perf_data/perf_data.h"

#include <linux/perf_event.h>

#include <bit>
#include <utility>

#include "bundle/perf_data/file_kind.h"
#include "bundle/perf_data/packed_records.h"
#include "bundle/perf_data/record_parser.h"
#include "bundle/perf_data/record_type.h"
#include "bundle/perf_data/sample_id.h"
#include "common/round_up.h"

namespace clew::bundle {
namespace {

constexpr uint64_t kMagic = 0x32454c4946524550;         // "PERFILE2"
constexpr uint64_t kMagicSwapped = 0x50455246494c4532;  // on a big-endian host
constexpr uint64_t kPipeHeaderBytes = 16;
// Far more events than any recording opens; bounds what a file may ask for.
constexpr uint64_t kAttrsMax = 65536;
// The header's set of features.
constexpr uint64_t kFeaturesOffset = 72;

}  // namespace

Result<PerfData> PerfData::Open(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  PerfData data(file.bytes(), path);
  data.file_ = std::move(file);
  CLEW_RETURN_IF_ERROR(data.ReadFileHeader());
  return data;
}

Result<PerfData> PerfData::Over(std::span<const std::byte> bytes,
                                const std::string& name) {
  PerfData data(bytes, name);
  CLEW_RETURN_IF_ERROR(data.ReadFileHeader());
  return data;
}

Status PerfData::ReadFileHeader() {
  ByteReader reader(bytes_, name_);
  CLEW_ASSIGN_OR_RETURN(magic, reader.Read<uint64_t>("magic"));
  if (magic == kMagicSwapped) {
    return Unsupported("{}: recorded on a big-endian host", name_);
  }
  if (magic != kMagic) {
    return CorruptInput(
        "{}: offset 0x0: magic is {:#x}, wanted {:#x} (\"PERFILE2\"): {}",
        name_, magic, kMagic, DescribeOtherFile(bytes_));
  }
  CLEW_ASSIGN_OR_RETURN(size, reader.Read<uint64_t>("header size"));
  if (size == kPipeHeaderBytes) {
    is_pipe_ = true;
    data_offset_ = kPipeHeaderBytes;
    data_size_ = bytes_.size() - kPipeHeaderBytes;
    return {};
  }
  return ReadHeader(reader);
}

Status PerfData::ReadHeader(ByteReader& reader) {
  CLEW_ASSIGN_OR_RETURN(attr_size, reader.Read<uint64_t>("attr_size"));
  CLEW_ASSIGN_OR_RETURN(attrs_offset, reader.Read<uint64_t>("attrs.offset"));
  CLEW_ASSIGN_OR_RETURN(attrs_size, reader.Read<uint64_t>("attrs.size"));
  CLEW_ASSIGN_OR_RETURN(data_offset, reader.Read<uint64_t>("data.offset"));
  CLEW_ASSIGN_OR_RETURN(data_size, reader.Read<uint64_t>("data.size"));
  CLEW_RETURN_IF_ERROR(ReaderOf(data_offset, data_size, "data"));
  data_offset_ = data_offset;
  data_size_ = data_size;
  ReadFeatureSections();
  return ReadAttrSection(attrs_offset, attrs_size, attr_size);
}

// Behind the data is a table of the features present: offset and size of each,
// in the order of their numbers.
void PerfData::ReadFeatureSections() {
  const auto set = [this]() -> Result<uint64_t> {
    CLEW_ASSIGN_OR_RETURN(header, ReaderOf(kFeaturesOffset, 8, "features"));
    return header.Read<uint64_t>("features");
  }();
  for (uint32_t feature = 0; feature < kFeaturesEnd; ++feature) {
    if ((set.value_or(0) >> feature & 1) == 0) {
      continue;
    }
    const uint64_t earlier = *set & ((uint64_t{1} << feature) - 1);
    const Status read = ReadFeatureSection(
        feature, static_cast<uint64_t>(std::popcount(earlier)));
    if (!read) {
      feature_faults_.push_back(read.error().message);
    }
  }
}

Status PerfData::ReadFeatureSection(uint32_t feature, uint64_t index) {
  CLEW_ASSIGN_OR_RETURN(entry, ReaderOf(data_offset_ + data_size_ + 16 * index,
                                        16, "feature table"));
  CLEW_ASSIGN_OR_RETURN(offset, entry.Read<uint64_t>("feature offset"));
  CLEW_ASSIGN_OR_RETURN(size, entry.Read<uint64_t>("feature size"));
  CLEW_ASSIGN_OR_RETURN(
      section, ReaderOf(offset, size, fmt::format("feature {}", feature)));
  return ReadFeature(feature, section, features_);
}

Result<ByteReader> PerfData::ReaderOf(uint64_t offset, uint64_t size,
                                      std::string_view section) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) {
    return CorruptInput(
        "{}: section {} is {} bytes at offset {:#x}, the file has {} bytes",
        name_, section, size, offset, bytes_.size());
  }
  return ByteReader(bytes_.subspan(offset, size), name_, offset);
}

Status PerfData::ReadAttrSection(uint64_t offset, uint64_t size,
                                 uint64_t attr_size) {
  CLEW_ASSIGN_OR_RETURN(section, ReaderOf(offset, size, "attrs"));
  if (attr_size == 0 || size % attr_size != 0 || size / attr_size > kAttrsMax) {
    return CorruptInput(
        "{}: offset {:#x}: {} bytes of attrs of {} bytes each, wanted a whole "
        "number, at most {}",
        name_, offset, size, attr_size, kAttrsMax);
  }
  while (!section.at_end()) {
    const uint64_t at = section.file_offset();
    CLEW_ASSIGN_OR_RETURN(bytes, section.ReadBytes(attr_size, "attr"));
    ByteReader entry(bytes, name_, at);
    CLEW_ASSIGN_OR_RETURN(attr, ReadEventAttr(entry));
    CLEW_ASSIGN_OR_RETURN(ids_offset, entry.Read<uint64_t>("attr ids.offset"));
    CLEW_ASSIGN_OR_RETURN(ids_size, entry.Read<uint64_t>("attr ids.size"));
    CLEW_ASSIGN_OR_RETURN(ids, ReadIds(ids_offset, ids_size));
    attr.ids = std::move(ids);
    attrs_.push_back(std::move(attr));
  }
  return {};
}

Result<std::vector<uint64_t>> PerfData::ReadIds(uint64_t offset,
                                                uint64_t size) {
  CLEW_ASSIGN_OR_RETURN(reader, ReaderOf(offset, size, "ids"));
  if (size > 8 * kAttrsMax) {
    return reader.Corrupt("{} bytes of event ids, wanted at most {}", size,
                          8 * kAttrsMax);
  }
  std::vector<uint64_t> ids;
  while (!reader.at_end()) {
    CLEW_ASSIGN_OR_RETURN(id, reader.Read<uint64_t>("event id"));
    ids.push_back(id);
  }
  return ids;
}

Status PerfData::ForEachRecord(const Visitor& visit) {
  if (is_pipe_) {
    attrs_.clear();
  }
  CLEW_ASSIGN_OR_RETURN(reader, ReaderOf(data_offset_, data_size_, "data"));
  PackedRecords packed(name_);
  while (!reader.at_end()) {
    packed_ = {};
    CLEW_ASSIGN_OR_RETURN(record, ReadRecord(reader));
    CLEW_RETURN_IF_ERROR(visit(record));
    if (!packed_.bytes.empty()) {
      CLEW_RETURN_IF_ERROR(VisitPacked(packed, visit));
    }
  }
  return packed.Finish();
}

Status PerfData::VisitPacked(PackedRecords& packed, const Visitor& visit) {
  const PackedBody body = packed_;
  return packed.Unpack(
      body.bytes, body.file_offset, [&](ByteReader& reader) -> Status {
        packed_ = {};
        CLEW_ASSIGN_OR_RETURN(record, ReadRecord(reader));
        if (!packed_.bytes.empty()) {
          return CorruptInput(
              "{}: offset {:#x}: a COMPRESSED record inside of another",
              reader.source(), record.file_offset);
        }
        return visit(record);
      });
}

Result<Record> PerfData::ReadRecord(ByteReader& reader) {
  Record record;
  record.file_offset = reader.file_offset();
  CLEW_ASSIGN_OR_RETURN(header, ReadRecordHeader(reader));
  record.type = header.type;
  const uint64_t body_offset = reader.file_offset();
  CLEW_ASSIGN_OR_RETURN(
      bytes,
      reader.ReadBytes(header.size - kRecordHeaderBytes,
                       fmt::format("{} record", RecordTypeName(header.type))));
  ByteReader body(bytes, name_, body_offset);
  switch (header.type) {
    case kRecordCompressed:
    case kRecordCompressed2:
      CLEW_RETURN_IF_ERROR(ReadPacked(header, body));
      return record;
    case kRecordAuxtrace:
      return ReadAuxtrace(reader, body, record);
    case kRecordHeaderAttr:
    case kRecordHeaderFeature:
    case kRecordTracingData:
    case kRecordHeaderBuildId:
      CLEW_RETURN_IF_ERROR(ReadOwnRecord(header, reader, body));
      return record;
    default:
      break;
  }
  if (header.type < kRecordUserFirst && header.type != PERF_RECORD_SAMPLE) {
    const EventAttr* attr = AttrOfRecord(attrs_, bytes);
    if (attr != nullptr && attr->sample_id_all) {
      CLEW_ASSIGN_OR_RETURN(
          id_bytes, ReadSampleId(attr->sample_type, bytes, name_, body_offset,
                                 record.sample));
      body =
          ByteReader(bytes.first(bytes.size() - id_bytes), name_, body_offset);
    }
  }
  CLEW_ASSIGN_OR_RETURN(parsed, ParseRecordBody(header, body));
  record.body = std::move(parsed);
  if (auto* mmap = std::get_if<MmapRecord>(&record.body);
      mmap != nullptr && mmap->build_id.empty()) {
    mmap->build_id = features_.BuildIdOf(mmap->path);
  }
  return record;
}

// COMPRESSED2 has its size before the data, and padding behind.
Status PerfData::ReadPacked(const RecordHeader& header, ByteReader& body) {
  uint64_t size = body.remaining_bytes();
  if (header.type == kRecordCompressed2) {
    CLEW_ASSIGN_OR_RETURN(told, body.Read<uint64_t>("compressed2 data_size"));
    size = told;
  }
  packed_.file_offset = body.file_offset();
  CLEW_ASSIGN_OR_RETURN(bytes, body.ReadBytes(size, "compressed data"));
  packed_.bytes = bytes;
  return {};
}

// Records of perf's own that say something of others. TRACING_DATA has its data
// behind it.
Status PerfData::ReadOwnRecord(const RecordHeader& header, ByteReader& reader,
                               ByteReader& body) {
  switch (header.type) {
    case kRecordHeaderAttr:
      return ReadAttrRecord(body);
    case kRecordHeaderBuildId:
      return ReadBuildIdRecord(header.misc, body, features_);
    case kRecordHeaderFeature: {
      CLEW_ASSIGN_OR_RETURN(feature, body.Read<uint64_t>("feature"));
      return feature < kFeaturesEnd
                 ? ReadFeature(static_cast<uint32_t>(feature), body, features_)
                 : Status();
    }
    default: {
      CLEW_ASSIGN_OR_RETURN(size, body.Read<uint32_t>("tracing_data size"));
      return reader.Skip(RoundUp(size, 8), "tracing data");
    }
  }
}

Result<Record> PerfData::ReadAuxtrace(ByteReader& reader, ByteReader& body,
                                      Record record) {
  uint64_t size_untrusted = 0;
  CLEW_ASSIGN_OR_RETURN(auxtrace, ParseAuxtrace(body, size_untrusted));
  CLEW_ASSIGN_OR_RETURN(bytes,
                        reader.ReadBytes(size_untrusted, "auxtrace data"));
  if (auxtrace.aux_offset + bytes.size() < auxtrace.aux_offset) {
    return body.Corrupt("auxtrace offset {:#x} with {} bytes wraps around",
                        auxtrace.aux_offset, bytes.size());
  }
  auxtrace.bytes = bytes;
  record.body = auxtrace;
  return record;
}

Status PerfData::ReadAttrRecord(ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(attr, ReadEventAttr(body));
  if (attrs_.size() >= kAttrsMax) {
    return body.Corrupt("more than {} attrs", kAttrsMax);
  }
  while (!body.at_end()) {
    CLEW_ASSIGN_OR_RETURN(id, body.Read<uint64_t>("attr id"));
    attr.ids.push_back(id);
  }
  attrs_.push_back(std::move(attr));
  return {};
}

}  // namespace clew::bundle
