#include "recorder/images/perf_capture.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "common/round_up.h"

namespace clew::recorder {
namespace {

using bundle::CommBody;
using bundle::kPerfRecordBytesMax;
using bundle::MmapBody;
using bundle::MmapMisc;
using bundle::PerfFileHead;
using bundle::PerfFileWriter;
using bundle::PerfMapping;
using bundle::PerfRecordBytes;
using bundle::PutPerfRecord;
using bundle::TaskBody;
using bundle::TaskId;
using bundle::TscConversion;

// Between what a core traced before it went and after it came again.
constexpr uint64_t kHoleBytes = 4096;

}  // namespace

Result<PerfCapture> PerfCapture::Create(FileSystem& files,
                                        const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(writer, PerfFileWriter::Create(files, path));
  return PerfCapture(std::move(writer));
}

Status PerfCapture::OnEvent(CoreId core, const perf::RecordView& record,
                            const perf::Event& event) {
  ++counts_.records;
  Core& of = cores_[core];
  of.last_nanos = std::max(of.last_nanos, event.id.time.as_int());
  if (const auto* mmap = std::get_if<bundle::MmapView>(&event.body)) {
    if (mmap->executable) {
      NoteMapping(mmap->pid,
                  {.path = std::string(mmap->path),
                   .build_id = {mmap->build_id.begin(), mmap->build_id.end()}});
    }
  } else if (std::holds_alternative<bundle::SwitchRecord>(event.body)) {
    if (ran_.size() < kMappingsMax) {
      ran_.insert(event.id.process);
    }
  } else if (const auto* task = std::get_if<bundle::TaskRecord>(&event.body)) {
    NoteTask(*task);
  } else if (const auto* lost = std::get_if<bundle::LostRecord>(&event.body)) {
    counts_.lost_records += lost->count;
  } else if (std::holds_alternative<bundle::AuxRecord>(event.body) &&
             of.base != 0) {
    return AddShifted(record, of.base);
  }
  return writer_.AddRecord(record.bytes);
}

// The only records that are changed: their offset is that of AUXTRACE.
Status PerfCapture::AddShifted(const perf::RecordView& record, uint64_t base) {
  std::vector<std::byte> copy(record.bytes.begin(), record.bytes.end());
  uint64_t offset = 0;
  std::byte* const field = copy.data() + sizeof(perf_event_header);
  std::memcpy(&offset, field, sizeof(offset));
  offset += base;
  std::memcpy(field, &offset, sizeof(offset));
  return writer_.AddRecord(copy);
}

Status PerfCapture::OnAux(CoreId core, const perf::AuxRingPiece& piece) {
  Core& of = cores_[core];
  const uint64_t offset = of.base + piece.offset;
  CLEW_RETURN_IF_ERROR(writer_.AddPt(core, offset, piece.first, piece.second));
  of.end = offset + piece.size_bytes();
  return {};
}

void PerfCapture::OnGap(CoreId, const perf::AuxGap& gap) {
  if (gap.cause == perf::AuxGapCause::kTruncated) {
    ++counts_.truncations;
  } else {
    ++counts_.other_gaps;
    counts_.gap_bytes += gap.size_bytes;
  }
}

void PerfCapture::RestartCore(CoreId core) {
  Core& of = cores_[core];
  of.base = of.end == 0 ? 0 : RoundUp(of.end, 8) + kHoleBytes;
}

void PerfCapture::NoteMapping(int32_t process, MappedImage image) {
  if (mappings_ >= kMappingsMax) {
    ++counts_.mappings_forgotten;
    return;
  }
  mappings_ += images_[std::move(image)].insert(process).second ? 1 : 0;
}

void PerfCapture::NoteTask(const bundle::TaskRecord& task) {
  if (!task.exited && task.pid != task.parent_pid &&
      parents_.size() < kMappingsMax) {
    parents_[task.pid] = task.parent_pid;
  }
}

std::set<int32_t> PerfCapture::ProcessesThatRan() const {
  std::set<int32_t> all;
  for (int32_t process : ran_) {
    while (all.insert(process).second && parents_.contains(process)) {
      process = parents_.at(process);
    }
  }
  return all;
}

void PerfCapture::SetOrigin(uint64_t nanos, uint64_t event_id) {
  origin_nanos_ = nanos;
  origin_event_ = event_id;
}

Status PerfCapture::AddOwn(uint32_t type, uint16_t misc,
                           const ByteBuilder& body, const TaskId& task) {
  if (PerfRecordBytes(body) > kPerfRecordBytesMax) {
    return {};  // a path that the kernel could not tell either
  }
  ByteBuilder record;
  PutPerfRecord(record, type, misc, body,
                {.process = task.process,
                 .thread = task.thread,
                 .time = PerfNanos(origin_nanos_),
                 .core = CoreId(0),
                 .event_id = origin_event_});
  return writer_.AddRecord(record.bytes());
}

Status PerfCapture::AddThread(const TaskId& task, const TaskId& parent,
                              std::string_view name) {
  CLEW_RETURN_IF_ERROR(
      AddOwn(PERF_RECORD_FORK, 0, TaskBody(task, parent, origin_nanos_), task));
  return AddOwn(PERF_RECORD_COMM, PERF_RECORD_MISC_USER, CommBody(task, name),
                task);
}

Status PerfCapture::AddMapping(const TaskId& task, const PerfMapping& mapping) {
  CLEW_ASSIGN_OR_RETURN(body, MmapBody(task, mapping));
  if ((mapping.prot & PROT_EXEC) != 0) {
    NoteMapping(task.process,
                {.path = mapping.path, .build_id = mapping.build_id});
  }
  return AddOwn(PERF_RECORD_MMAP2, MmapMisc(mapping), body, task);
}

Status PerfCapture::Finish(const PerfFileHead& head,
                           std::span<const std::byte> first_records,
                           const TscConversion* clock) {
  std::map<CoreId, uint64_t> references;
  for (const auto& [core, of] : cores_) {
    if (clock != nullptr && of.last_nanos != 0) {
      references[core] =
          bundle::ToTsc(PerfNanos(of.last_nanos), *clock).lo.as_int();
    }
  }
  return writer_.Finish(head, first_records, references);
}

}  // namespace clew::recorder
