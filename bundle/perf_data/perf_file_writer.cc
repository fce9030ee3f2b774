#include "bundle/perf_data/perf_file_writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/check.h"

namespace clew::bundle {
namespace {

constexpr size_t kCopyBytes = size_t{4} << 20;

}  // namespace

PerfFileWriter::PerfFileWriter(FileSystem& files, std::string path)
    : files_(&files), path_(std::move(path)) {
  buffer_.reserve(kRecordBufferBytes + UINT16_MAX);
}

Result<PerfFileWriter> PerfFileWriter::Create(FileSystem& files,
                                              const std::string& path) {
  PerfFileWriter writer(files, path);
  CLEW_ASSIGN_OR_RETURN(records, files.Create(path + ".records"));
  writer.records_ = std::move(records);
  return writer;
}

Status PerfFileWriter::AddRecord(std::span<const std::byte> record) {
  CLEW_CHECK(records_, "a record after Finish");
  CLEW_CHECK(record.size() >= sizeof(perf_event_header) &&
                 record.size() <= UINT16_MAX && record.size() % 8 == 0,
             "a record of {} bytes", record.size());
  buffer_.insert(buffer_.end(), record.begin(), record.end());
  round_has_records_ = true;
  return buffer_.size() < kRecordBufferBytes ? Status() : FlushRecords();
}

Status PerfFileWriter::EndRound() {
  if (!std::exchange(round_has_records_, false)) {
    return {};
  }
  perf_event_header header = {};
  header.type = 68;  // PERF_RECORD_FINISHED_ROUND, tools/perf/util/event.h
  header.size = sizeof(header);
  const auto bytes = std::as_bytes(std::span(&header, 1));
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return {};
}

Status PerfFileWriter::FlushRecords() {
  CLEW_RETURN_IF_ERROR(records_->Append(buffer_));
  record_bytes_ += buffer_.size();
  buffer_.clear();
  return {};
}

Result<PerfFileWriter::Stretch*> PerfFileWriter::StretchAt(CoreId core,
                                                           uint64_t offset) {
  const auto last = last_stretch_.find(core);
  if (last != last_stretch_.end()) {
    Stretch& stretch = stretches_[last->second];
    const uint64_t end = stretch.offset + stretch.bytes;
    if (offset == end) {
      return &stretch;
    }
    CLEW_CHECK(offset > end, "core {}: PT at {:#x} comes after {:#x}", core,
               offset, end);
    stretch.file.reset();
  }
  Stretch stretch{.core = core,
                  .path = fmt::format("{}.pt.{}", path_, stretches_.size()),
                  .offset = offset,
                  .bytes = 0,
                  .file = {}};
  CLEW_ASSIGN_OR_RETURN(file, files_->Create(stretch.path));
  stretch.file = std::move(file);
  last_stretch_[core] = stretches_.size();
  stretches_.push_back(std::move(stretch));
  return &stretches_.back();
}

Status PerfFileWriter::AddPt(CoreId core, uint64_t offset,
                             std::span<const std::byte> first,
                             std::span<const std::byte> second) {
  CLEW_CHECK(records_, "PT after Finish");
  CLEW_ASSIGN_OR_RETURN(stretch, StretchAt(core, offset));
  for (const auto bytes : {first, second}) {
    if (!bytes.empty()) {
      CLEW_RETURN_IF_ERROR(stretch->file->Append(bytes));
      stretch->bytes += bytes.size();
      pt_bytes_ += bytes.size();
    }
  }
  return {};
}

uint64_t PerfFileWriter::DataBytes(
    std::span<const std::byte> first_records) const {
  uint64_t bytes = first_records.size() + record_bytes_;
  for (const Stretch& stretch : stretches_) {
    bytes += kAuxtraceHeadBytes + PaddedTraceBytes(stretch.bytes);
  }
  return bytes;
}

Status PerfFileWriter::CopyFile(WritableFile& out, const std::string& path,
                                uint64_t bytes) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  std::span<const std::byte> rest = file.bytes();
  if (rest.size() != bytes) {
    return CorruptInput("{:?}: {} bytes, {} were written", path, rest.size(),
                        bytes);
  }
  while (!rest.empty()) {
    const auto part = rest.first(std::min(rest.size(), kCopyBytes));
    CLEW_RETURN_IF_ERROR(out.Append(part));
    rest = rest.subspan(part.size());
  }
  return files_->RemoveAll(path);
}

// Filled up with PAD packets, which are zero.
Status PerfFileWriter::CopyPt(WritableFile& out, const Stretch& stretch,
                              uint64_t reference) {
  const uint64_t padded = PaddedTraceBytes(stretch.bytes);
  const ByteBuilder head = BuildAuxtraceHead({.bytes = padded,
                                              .aux_offset = stretch.offset,
                                              .reference = reference,
                                              .core = stretch.core.as_int()});
  CLEW_RETURN_IF_ERROR(out.Append(head.bytes()));
  CLEW_RETURN_IF_ERROR(CopyFile(out, stretch.path, stretch.bytes));
  constexpr std::array<std::byte, 8> kPadding = {};
  return out.Append(std::span(kPadding).first(padded - stretch.bytes));
}

Status PerfFileWriter::Finish(const PerfFileHead& head,
                              std::span<const std::byte> first_records,
                              const std::map<CoreId, uint64_t>& reference_tsc) {
  CLEW_CHECK(records_, "Finish twice");
  CLEW_RETURN_IF_ERROR(FlushRecords());
  records_.reset();
  const uint64_t data_bytes = DataBytes(first_records);
  const ByteBuilder begin = BuildHead(head, data_bytes);
  CLEW_ASSIGN_OR_RETURN(out, files_->Create(path_));
  CLEW_RETURN_IF_ERROR(out->Append(begin.bytes()));
  CLEW_RETURN_IF_ERROR(out->Append(first_records));
  CLEW_RETURN_IF_ERROR(CopyFile(*out, path_ + ".records", record_bytes_));
  uint64_t at = begin.size() + first_records.size() + record_bytes_;
  std::vector<uint64_t> auxtrace_offsets;
  for (Stretch& stretch : stretches_) {
    stretch.file.reset();
    auxtrace_offsets.push_back(at);
    at += kAuxtraceHeadBytes + PaddedTraceBytes(stretch.bytes);
    const auto reference = reference_tsc.find(stretch.core);
    CLEW_RETURN_IF_ERROR(
        CopyPt(*out, stretch,
               reference == reference_tsc.end()
                   ? 1
                   : std::max<uint64_t>(reference->second, 1)));
  }
  CLEW_CHECK(at == begin.size() + data_bytes, "records end at {}, wanted {}",
             at, begin.size() + data_bytes);
  CLEW_RETURN_IF_ERROR(
      out->Append(BuildFeatures(head, at, auxtrace_offsets).bytes()));
  return out->Sync();
}

}  // namespace clew::bundle
