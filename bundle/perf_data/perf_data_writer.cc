#include "bundle/perf_data/perf_data_writer.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "bundle/perf_data/perf_data_header.h"
#include "common/byte_builder.h"
#include "common/check.h"

namespace clew::bundle {
namespace {

constexpr uint32_t kCoresMax = 4096;

// All PT of a core goes into one record: perf (6.1) takes a packet that goes on
// in the next record for a bad one.
uint64_t AuxtraceBytes(uint64_t pt_bytes) {
  return pt_bytes == 0 ? 0 : kAuxtraceHeadBytes + PaddedTraceBytes(pt_bytes);
}

TaskId TaskOf(const RecordOrigin& origin) {
  return {origin.process, origin.thread};
}

Status ValidateConfig(const PerfDataConfig& config) {
  if (config.core_count < 1 || config.core_count > kCoresMax) {
    return InvalidArgument("perf.data: core_count is {}, wanted 1 to {}",
                           config.core_count, kCoresMax);
  }
  if ((config.tsc_ctc_numerator == 0) != (config.tsc_ctc_denominator == 0)) {
    return InvalidArgument(
        "perf.data: TSC/CTC ratio is {}/{}, wanted both 0 or neither",
        config.tsc_ctc_numerator, config.tsc_ctc_denominator);
  }
  if (config.clock.mult == 0 || config.clock.shift > 32) {
    return InvalidArgument(
        "perf.data: clock is mult {}, shift {}, wanted mult > 0, shift <= 32",
        config.clock.mult, config.clock.shift);
  }
  return {};
}

}  // namespace

class PerfDataWriter::Impl {
 public:
  Impl(FileSystem& files, std::string path, PerfDataConfig config)
      : files_(files),
        path_(std::move(path)),
        records_path_(path_ + ".records"),
        config_(std::move(config)),
        cores_(config_.core_count) {}

  [[nodiscard]] Status Open() {
    CLEW_ASSIGN_OR_RETURN(file, files_.Create(records_path_));
    records_ = std::move(file);
    return {};
  }

  // Appends one kernel record: header, `body`, identification.
  [[nodiscard]] Status AddRecord(uint32_t type, uint16_t misc,
                                 const ByteBuilder& body,
                                 const RecordOrigin& origin) {
    const size_t bytes = PerfRecordBytes(body);
    CLEW_CHECK(records_, "a record after Finish");
    CLEW_CHECK(origin.core.as_int() < config_.core_count, "core {} of {}",
               origin.core, config_.core_count);
    if (bytes > kPerfRecordBytesMax) {
      return InvalidArgument("perf.data: a record of {} bytes, at most {} fit",
                             bytes, kPerfRecordBytesMax);
    }
    PutPerfRecord(buffer_, type, misc, body,
                  {.process = origin.process,
                   .thread = origin.thread,
                   .time = ToPerfNanos(origin.time, config_.clock),
                   .core = origin.core,
                   .event_id = SidebandEventId(config_, origin.core)});
    uint64_t& last = cores_[origin.core.as_int()].last_time;
    last = std::max(last, origin.time.as_int());
    return buffer_.size() < kRecordBufferBytes ? Status() : FlushRecords();
  }

  [[nodiscard]] Status AddAuxtrace(CoreId core, const std::string& pt_path) {
    CLEW_CHECK(core.as_int() < config_.core_count, "core {} of {}", core,
               config_.core_count);
    Core& entry = cores_[core.as_int()];
    CLEW_CHECK(!entry.pt, "core {} has its PT bytes already", core);
    CLEW_ASSIGN_OR_RETURN(mapped, MappedFile::Open(pt_path));
    entry.pt.emplace(std::move(mapped));
    return {};
  }

  [[nodiscard]] Status Finish() {
    CLEW_CHECK(records_, "Finish twice");
    CLEW_RETURN_IF_ERROR(FlushRecords());
    records_.reset();
    CLEW_ASSIGN_OR_RETURN(out, files_.Create(path_));
    CLEW_RETURN_IF_ERROR(WriteAll(*out));
    CLEW_RETURN_IF_ERROR(out->Sync());
    return files_.RemoveAll(records_path_);
  }

  const PerfDataConfig& config() const { return config_; }

 private:
  struct Core {
    uint64_t last_time = 1;  // TSC of its last record
    std::optional<MappedFile> pt;
  };

  [[nodiscard]] Status FlushRecords() {
    CLEW_RETURN_IF_ERROR(records_->Append(buffer_.bytes()));
    records_bytes_ += buffer_.size();
    buffer_.Clear();
    return {};
  }

  [[nodiscard]] Status WriteAll(WritableFile& out) {
    const ByteBuilder first = BuildFirstRecords(config_);
    uint64_t data_bytes = first.size() + records_bytes_;
    for (const Core& core : cores_) {
      data_bytes += core.pt ? AuxtraceBytes(core.pt->bytes().size()) : 0;
    }
    const ByteBuilder head = BuildHead(HeadOf(config_), data_bytes);
    CLEW_RETURN_IF_ERROR(out.Append(head.bytes()));
    CLEW_RETURN_IF_ERROR(out.Append(first.bytes()));
    CLEW_RETURN_IF_ERROR(CopyRecords(out));
    next_offset_ = head.size() + first.size() + records_bytes_;
    for (uint32_t core = 0; core < config_.core_count; ++core) {
      CLEW_RETURN_IF_ERROR(CopyPt(out, core));
    }
    CLEW_CHECK(next_offset_ == head.size() + data_bytes,
               "records end at {}, announced {}", next_offset_,
               head.size() + data_bytes);
    return out.Append(
        BuildFeatures(HeadOf(config_), next_offset_, auxtrace_offsets_)
            .bytes());
  }

  [[nodiscard]] Status CopyRecords(WritableFile& out) {
    CLEW_ASSIGN_OR_RETURN(records, MappedFile::Open(records_path_));
    if (records.bytes().size() != records_bytes_) {
      return CorruptInput("{}: {} bytes, {} were written", records_path_,
                          records.bytes().size(), records_bytes_);
    }
    return out.Append(records.bytes());
  }

  // The bytes are filled up with PAD packets, which are zero.
  [[nodiscard]] Status CopyPt(WritableFile& out, uint32_t core) {
    const Core& entry = cores_[core];
    if (!entry.pt || entry.pt->bytes().empty()) {
      return {};
    }
    const std::span<const std::byte> pt = entry.pt->bytes();
    const uint64_t padded = PaddedTraceBytes(pt.size());
    auxtrace_offsets_.push_back(next_offset_);
    next_offset_ += kAuxtraceHeadBytes + padded;
    // perf takes the upper byte of the first TSC from it, and takes 0 for none.
    const ByteBuilder record = BuildAuxtraceHead({.bytes = padded,
                                                  .aux_offset = 0,
                                                  .reference = entry.last_time,
                                                  .core = core});
    CLEW_RETURN_IF_ERROR(out.Append(record.bytes()));
    CLEW_RETURN_IF_ERROR(out.Append(pt));
    ByteBuilder padding;
    padding.PutZeros(padded - pt.size());
    return out.Append(padding.bytes());
  }

  FileSystem& files_;
  std::string path_;
  std::string records_path_;
  PerfDataConfig config_;
  std::vector<Core> cores_;
  std::unique_ptr<WritableFile> records_;
  uint64_t records_bytes_ = 0;
  ByteBuilder buffer_;
  uint64_t next_offset_ = 0;  // in the file, while it is written
  std::vector<uint64_t> auxtrace_offsets_;
};

PerfDataWriter::PerfDataWriter(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
PerfDataWriter::PerfDataWriter(PerfDataWriter&&) noexcept = default;
PerfDataWriter& PerfDataWriter::operator=(PerfDataWriter&&) noexcept = default;
PerfDataWriter::~PerfDataWriter() = default;

Result<PerfDataWriter> PerfDataWriter::Create(FileSystem& files,
                                              const std::string& path,
                                              PerfDataConfig config) {
  CLEW_RETURN_IF_ERROR(ValidateConfig(config));
  auto impl = std::make_unique<Impl>(files, path, std::move(config));
  CLEW_RETURN_IF_ERROR(impl->Open());
  return PerfDataWriter(std::move(impl));
}

Status PerfDataWriter::AddComm(const RecordOrigin& origin,
                               std::string_view name, bool exec) {
  const ByteBuilder body = CommBody(TaskOf(origin), name);
  const uint32_t misc =
      PERF_RECORD_MISC_USER | (exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
  return impl_->AddRecord(PERF_RECORD_COMM, static_cast<uint16_t>(misc), body,
                          origin);
}

Status PerfDataWriter::AddMmap2(const RecordOrigin& origin,
                                const PerfMapping& mapping) {
  CLEW_ASSIGN_OR_RETURN(body, MmapBody(TaskOf(origin), mapping));
  return impl_->AddRecord(PERF_RECORD_MMAP2, MmapMisc(mapping), body, origin);
}

Status PerfDataWriter::AddFork(const RecordOrigin& origin,
                               int32_t child_process, Tid child) {
  const ByteBuilder body =
      TaskBody({child_process, child}, TaskOf(origin),
               ToPerfNanos(origin.time, impl_->config().clock).as_int());
  return impl_->AddRecord(PERF_RECORD_FORK, 0, body, origin);
}

Status PerfDataWriter::AddExit(const RecordOrigin& origin,
                               int32_t parent_process, Tid parent) {
  const ByteBuilder body =
      TaskBody(TaskOf(origin), {parent_process, parent},
               ToPerfNanos(origin.time, impl_->config().clock).as_int());
  return impl_->AddRecord(PERF_RECORD_EXIT, 0, body, origin);
}

Status PerfDataWriter::AddSwitchIn(const RecordOrigin& origin) {
  return impl_->AddRecord(PERF_RECORD_SWITCH, 0, ByteBuilder(), origin);
}

Status PerfDataWriter::AddSwitchOut(const RecordOrigin& origin,
                                    bool preempted) {
  const uint32_t misc = PERF_RECORD_MISC_SWITCH_OUT |
                        (preempted ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0);
  return impl_->AddRecord(PERF_RECORD_SWITCH, static_cast<uint16_t>(misc),
                          ByteBuilder(), origin);
}

Status PerfDataWriter::AddItraceStart(const RecordOrigin& origin) {
  ByteBuilder body;
  body.Put(origin.process).Put(origin.thread.as_int());
  return impl_->AddRecord(PERF_RECORD_ITRACE_START, 0, body, origin);
}

Status PerfDataWriter::AddAux(const RecordOrigin& origin, uint64_t offset_bytes,
                              uint64_t size_bytes, uint64_t flags) {
  ByteBuilder body;
  body.Put(offset_bytes).Put(size_bytes).Put(flags);
  return impl_->AddRecord(PERF_RECORD_AUX, 0, body, origin);
}

Status PerfDataWriter::AddAuxtrace(CoreId core, const std::string& pt_path) {
  return impl_->AddAuxtrace(core, pt_path);
}

Status PerfDataWriter::Finish() { return impl_->Finish(); }

}  // namespace clew::bundle
