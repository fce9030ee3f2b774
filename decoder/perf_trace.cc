#include "decoder/perf_trace.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "bundle/perf_data/cpu_id.h"
#include "bundle/perf_data/pt_stream.h"
#include "bundle/perf_data/record_type.h"

namespace clew::decoder {
namespace {

using bundle::AuxRecord;
using bundle::AuxtraceRecord;
using bundle::CommRecord;
using bundle::EventAttr;
using bundle::IdIndexRecord;
using bundle::IsStreamOfThread;
using bundle::ItraceStartRecord;
using bundle::LostRecord;
using bundle::MmapRecord;
using bundle::ParseCpuId;
using bundle::PerfData;
using bundle::PtInfoRecord;
using bundle::Record;
using bundle::RecordTypeName;
using bundle::SampleId;
using bundle::StreamOfThread;
using bundle::SwitchRecord;
using bundle::TaskRecord;
using bundle::TimeConvRecord;
using bundle::ToTsc;

// perf pads AUXTRACE data to a multiple of 8 bytes, which the offset of the
// next one does not count.
constexpr uint64_t kPaddingMax = 7;

}  // namespace

Result<std::unique_ptr<PerfTrace>> PerfTrace::Load(PerfData data,
                                                   const TraceConfig& config) {
  std::unique_ptr<PerfTrace> trace(new PerfTrace(std::move(data), config));
  if (!trace->config_.resolve_image) {
    trace->config_.resolve_image = [](const MmapRecord&) {
      return std::string();
    };
  }
  CLEW_RETURN_IF_ERROR(trace->ReadRecords());
  CLEW_RETURN_IF_ERROR(trace->BuildPieces());
  trace->slices_ = trace->slice_builder_.Build();
  trace->FindSpaces();
  return trace;
}

// Twice, because the clock may be told after the records that need it.
Status PerfTrace::ReadRecords() {
  CLEW_RETURN_IF_ERROR(data_.ForEachRecord(
      [this](const Record& record) { return OnFirstPass(record); }));
  if (!has_pt_info_ && !config_.sideband_alone) {
    return Unsupported(
        "{}: no AUXTRACE_INFO record, so no Intel PT in it; record "
        "with perf record -e intel_pt//u",
        data_.name());
  }
  ReadTiming(pt_info_);
  cpu_ = config_.cpu.value_or(ParseCpuId(data_.features().cpu_id));
  return data_.ForEachRecord([this](const Record& record) -> Status {
    OnRecord(record);
    return {};
  });
}

Status PerfTrace::OnFirstPass(const Record& record) {
  ++record_counts_[record.type];
  if (const auto* info = std::get_if<PtInfoRecord>(&record.body)) {
    SetPtInfo(*info);
  } else if (const auto* time = std::get_if<TimeConvRecord>(&record.body)) {
    conversion_ = time->conversion;
  } else if (const auto* mmap = std::get_if<MmapRecord>(&record.body)) {
    NoteProcess(*mmap);
  } else if (const auto* aux = std::get_if<AuxtraceRecord>(&record.body)) {
    per_thread_ = per_thread_ || IsStreamOfThread(aux->core);
  } else if (const auto* index = std::get_if<IdIndexRecord>(&record.body)) {
    for (const IdIndexRecord::Entry& entry : index->of_threads) {
      thread_of_event_[entry.id] = entry.thread;
    }
  }
  return {};
}

// The PT stream that a record is about.
std::optional<CoreId> PerfTrace::StreamOf(const SampleId& sample) const {
  if (!per_thread_) {
    return sample.core;
  }
  const auto event = thread_of_event_.find(sample.id.value_or(0));
  const Tid thread = event == thread_of_event_.end()
                         ? sample.tid.value_or(Tid(0))
                         : event->second;
  return thread > Tid(0) ? std::optional(StreamOfThread(thread)) : std::nullopt;
}

// The kernel's own mappings have no process (-1).
void PerfTrace::NoteProcess(const MmapRecord& mapping) {
  if (!mapping.executable || mapping.size_bytes == 0 || mapping.pid <= 0) {
    return;
  }
  if (first_process_ != 0 && mapping.pid != first_process_) {
    spaces_.SetSeveral();
  }
  first_process_ = first_process_ == 0 ? mapping.pid : first_process_;
}

void PerfTrace::SetPtInfo(const PtInfoRecord& info) {
  has_pt_info_ = true;
  pt_info_ = info;
  conversion_ = info.clock.value_or(conversion_);
}

// The MTC period is a field of the event's configuration (the mask says where).
void PerfTrace::ReadTiming(const PtInfoRecord& info) {
  timing_.branches_before_timing = config_.branches_before_timing;
  timing_.tsc_bus_ratio =
      static_cast<uint32_t>(std::min<uint64_t>(info.max_nonturbo_ratio, 255));
  if (info.ctc_numerator <= UINT32_MAX && info.ctc_denominator <= UINT32_MAX) {
    timing_.ctc_numerator = static_cast<uint32_t>(info.ctc_numerator);
    timing_.ctc_denominator = static_cast<uint32_t>(info.ctc_denominator);
  }
  for (const EventAttr& attr : data_.attrs()) {
    if (attr.type == info.pmu_type && info.mtc_freq_mask != 0) {
      const uint64_t period = (attr.config & info.mtc_freq_mask) >>
                              std::countr_zero(info.mtc_freq_mask);
      timing_.mtc_period = static_cast<uint32_t>(period & 0xf);
    }
  }
}

TscInterval PerfTrace::TimeOf(const SampleId& sample) const {
  return sample.time ? ToTsc(*sample.time, conversion_) : TscInterval{};
}

// perf gives what was there before it began time 0, which may be before the
// TSC's.
TscTicks PerfTrace::CodeTime(const SampleId& sample) const {
  const bool early = sample.time && sample.time->as_int() == 0;
  return early ? TscTicks(0) : TimeOf(sample).lo;
}

void PerfTrace::OnRecord(const Record& record) {
  const SampleId& sample = record.sample;
  if (const auto* mmap = std::get_if<MmapRecord>(&record.body)) {
    spaces_.AddMapping(*mmap, CodeTime(sample), config_.resolve_image(*mmap));
  } else if (const auto* comm = std::get_if<CommRecord>(&record.body)) {
    OnComm(*comm, sample);
  } else if (const auto* task = std::get_if<TaskRecord>(&record.body)) {
    OnTask(*task, sample);
  } else if (const auto* change = std::get_if<SwitchRecord>(&record.body)) {
    OnSwitch(*change, sample);
  } else if (const auto* start = std::get_if<ItraceStartRecord>(&record.body)) {
    OnItraceStart(*start, sample);
  } else if (const auto* aux = std::get_if<AuxRecord>(&record.body)) {
    OnAux(*aux, record);
  } else if (const auto* lost = std::get_if<LostRecord>(&record.body)) {
    const std::optional<CoreId> stream = StreamOf(sample);
    losses_.push_back({.core_known = stream.has_value(),
                       .core = stream.value_or(CoreId(0)),
                       .time = TimeOf(sample).lo,
                       .records = lost->count});
  } else if (const auto* auxtrace = std::get_if<AuxtraceRecord>(&record.body)) {
    auxtrace_.push_back(*auxtrace);
  }
}

void PerfTrace::OnTask(const TaskRecord& task, const SampleId& sample) {
  if (task.exited) {
    return;
  }
  // A new thread has its parent's name until it sets one.
  threads_.emplace(
      task.tid, ThreadInfo{task.pid, task.tid, threads_[task.parent_tid].name});
  spaces_.AddFork(task.parent_pid, task.pid, CodeTime(sample));
}

void PerfTrace::OnComm(const CommRecord& comm, const SampleId& sample) {
  threads_[comm.tid] = {comm.pid, comm.tid, std::string(comm.name)};
  if (!comm.exec || !spaces_.several()) {
    return;
  }
  spaces_.AddExec(comm.pid, CodeTime(sample));
  if (const auto stream = StreamOf(sample)) {
    slice_builder_.Add({.kind = SliceBoundary::Kind::kExec,
                        .core = *stream,
                        .thread = comm.tid,
                        .process = comm.pid,
                        .time = TimeOf(sample)});
  }
}

int32_t PerfTrace::ProcessOf(Tid thread) const {
  const auto found = threads_.find(thread);
  return found == threads_.end() ? 0 : found->second.process;
}

void PerfTrace::FindSpaces() {
  spaces_.Build(pt_info_.snapshot);
  space_of_.reserve(slices_.size());
  for (Slice& slice : slices_) {
    if (slice.process == 0) {
      slice.process = ProcessOf(slice.thread);
    }
    space_of_.push_back(spaces_.At(slice.process, slice.time.lo));
  }
}

SpaceId PerfTrace::SpaceOf(const Slice& slice) const {
  return space_of_[slice.id];
}

CodeMap PerfTrace::CodeOf(Tid thread) const {
  return spaces_.MapOf(spaces_.At(ProcessOf(thread), TscTicks(UINT64_MAX)));
}

// A thread's own stream has no slices of other threads.
void PerfTrace::OnItraceStart(const ItraceStartRecord& start,
                              const SampleId& sample) {
  if (sample.core && !per_thread_) {
    slice_builder_.Add({.kind = SliceBoundary::Kind::kStart,
                        .core = *sample.core,
                        .thread = start.tid,
                        .process = start.pid,
                        .time = TimeOf(sample)});
  }
}

void PerfTrace::OnAux(const AuxRecord& aux, const Record& record) {
  const std::optional<CoreId> stream = StreamOf(record.sample);
  if (aux.truncated() && stream) {
    holes_[*stream].push_back(
        {.offset = aux.offset_bytes + aux.size_bytes,
         .reason = fmt::format("AUX record at offset {:#x} is marked "
                               "truncated: the AUX area was full",
                               record.file_offset)});
  }
}

void PerfTrace::OnSwitch(const SwitchRecord& change, const SampleId& sample) {
  if (!sample.core || !sample.tid || per_thread_) {
    return;
  }
  slice_builder_.Add({.kind = change.out ? SliceBoundary::Kind::kOut
                                         : SliceBoundary::Kind::kIn,
                      .core = *sample.core,
                      .thread = *sample.tid,
                      .process = sample.pid.value_or(0),
                      .time = TimeOf(sample)});
}

Status PerfTrace::BuildPieces() {
  std::map<CoreId, std::vector<AuxtraceRecord>> by_core;
  for (const AuxtraceRecord& part : auxtrace_) {
    if (!part.bytes.empty()) {
      by_core[part.core].push_back(part);
      slice_builder_.SetOnlyThread(part.core, part.tid);
    }
  }
  for (auto& [core, parts] : by_core) {
    CLEW_RETURN_IF_ERROR(BuildCore(core, std::move(parts)));
  }
  return {};
}

// Joins the parts that follow each other without a hole.
Status PerfTrace::BuildCore(CoreId core, std::vector<AuxtraceRecord> parts) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const AuxtraceRecord& a, const AuxtraceRecord& b) {
                     return a.aux_offset < b.aux_offset;
                   });
  CoreTrace trace{.core = core, .pieces = {}, .bytes = 0};
  uint64_t end = parts.front().aux_offset;
  for (size_t first = 0; first < parts.size();) {
    AuxPiece piece{.aux_offset = parts[first].aux_offset,
                   .bytes = {},
                   .hole = {},
                   .hole_bytes = 0};
    if (first > 0) {
      const bool behind = parts[first].aux_offset > end;
      piece.hole_bytes = behind ? parts[first].aux_offset - end : 0;
      piece.hole = behind ? fmt::format(
                                "no AUXTRACE record has the AUX bytes "
                                "from {:#x} to {:#x}",
                                end, parts[first].aux_offset)
                          : fmt::format("AUXTRACE records overlap at {:#x}",
                                        parts[first].aux_offset);
    }
    size_t last = first;
    uint64_t bytes = parts[first].bytes.size();
    end = piece.aux_offset + bytes;
    while (last + 1 < parts.size()) {
      AuxtraceRecord& next = parts[last + 1];
      if (next.aux_offset > end || end - next.aux_offset > kPaddingMax ||
          end - next.aux_offset > parts[last].bytes.size()) {
        break;
      }
      const uint64_t padding = end - next.aux_offset;
      parts[last].bytes =
          parts[last].bytes.first(parts[last].bytes.size() - padding);
      bytes += next.bytes.size() - padding;
      end = next.aux_offset + next.bytes.size();
      ++last;
    }
    const std::span run(parts.begin() + static_cast<ptrdiff_t>(first),
                        parts.begin() + static_cast<ptrdiff_t>(last) + 1);
    CLEW_ASSIGN_OR_RETURN(joined, Join(run, bytes));
    piece.bytes = joined;
    trace.bytes += bytes;
    AddPieces(trace, std::move(piece));
    first = last + 1;
  }
  cores_.push_back(std::move(trace));
  return {};
}

Result<std::span<const std::byte>> PerfTrace::Join(
    std::span<const AuxtraceRecord> run, uint64_t bytes) {
  if (run.size() == 1) {
    return run.front().bytes;
  }
  joined_bytes_ += bytes;
  if (joined_bytes_ > config_.joined_aux_bytes_max) {
    return LimitReached(
        "{}: {} bytes of AUX area in parts are more than "
        "joined_aux_bytes_max ({}); record a shorter run, or the end of it "
        "alone (perf record --snapshot)",
        data_.name(), joined_bytes_, config_.joined_aux_bytes_max);
  }
  std::vector<std::byte>& joined = joined_.emplace_back();
  joined.reserve(bytes);
  for (const AuxtraceRecord& part : run) {
    joined.insert(joined.end(), part.bytes.begin(), part.bytes.end());
  }
  return std::span<const std::byte>(joined);
}

// Cuts a piece where an AUX record says that trace is missing.
void PerfTrace::AddPieces(CoreTrace& trace, AuxPiece piece) {
  auto& holes = holes_[trace.core];
  std::sort(holes.begin(), holes.end(), [](const AuxHole& a, const AuxHole& b) {
    return a.offset < b.offset;
  });
  for (const AuxHole& hole : holes) {
    const uint64_t end = piece.aux_offset + piece.bytes.size();
    if (hole.offset <= piece.aux_offset || hole.offset > end) {
      continue;
    }
    const uint64_t before = hole.offset - piece.aux_offset;
    AuxPiece rest{.aux_offset = hole.offset,
                  .bytes = piece.bytes.subspan(before),
                  .hole = hole.reason,
                  .hole_bytes = 0};
    piece.bytes = piece.bytes.first(before);
    trace.pieces.push_back(std::exchange(piece, std::move(rest)));
  }
  if (!piece.bytes.empty() || !piece.hole.empty()) {
    trace.pieces.push_back(std::move(piece));
  }
}

MissingImages FindMissing(const PerfTrace& trace, Tid failing) {
  MissingImages missing;
  missing.needed = trace.spaces().Missing();
  if (failing != Tid(0) && trace.threads().contains(failing)) {
    const size_t all = missing.needed.size();
    missing.needed = trace.CodeOf(failing).Missing();
    missing.others = all - std::min(all, missing.needed.size());
  }
  return missing;
}

std::string PerfTrace::StreamsText() const {
  const auto threads =
      std::ranges::count_if(cores_, IsStreamOfThread,
                            [](const CoreTrace& core) { return core.core; });
  const auto cores = static_cast<ptrdiff_t>(cores_.size()) - threads;
  if (threads == 0) {
    return fmt::format("{} cores", cores);
  }
  return cores == 0 ? fmt::format("{} threads", threads)
                    : fmt::format("{} cores and {} threads", cores, threads);
}

std::vector<RecordCount> PerfTrace::RecordCounts() const {
  std::vector<RecordCount> counts;
  counts.reserve(record_counts_.size());
  for (const auto& [type, count] : record_counts_) {
    counts.push_back({RecordTypeName(type), count});
  }
  return counts;
}

}  // namespace clew::decoder
