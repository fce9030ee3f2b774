#include "bundle/perf_data/record_parser.h"

#include <array>
#include <string_view>

#include "bundle/perf_data/pt_stream.h"
#include "common/build_id.h"

namespace clew::bundle {
namespace {

// linux/perf_event.h, PERF_RECORD_MISC_*.
constexpr uint16_t kMiscMmapData = 1u << 13;
constexpr uint16_t kMiscCommExec = 1u << 13;
constexpr uint16_t kMiscSwitchOut = 1u << 13;
constexpr uint16_t kMiscMmapBuildId = 1u << 14;
constexpr uint32_t kProtExecute = 4;
// PERF_AUX_FLAG_*.
constexpr uint64_t kAuxTruncated = 1;
constexpr uint64_t kAuxOverwrite = 2;
// tools/perf/util/auxtrace.h, PERF_AUXTRACE_INTEL_PT.
constexpr uint32_t kAuxtraceIntelPt = 1;
// perf's `cpu` of what is a thread's, on whichever core.
constexpr int32_t kNoCore = -1;

Result<int32_t> ReadId(ByteReader& body, std::string_view field) {
  CLEW_ASSIGN_OR_RETURN(value, body.Read<uint32_t>(field));
  return static_cast<int32_t>(value);
}

Status ReadMmapCommon(ByteReader& body, MmapRecord& mmap) {
  CLEW_ASSIGN_OR_RETURN(pid, ReadId(body, "mmap pid"));
  CLEW_ASSIGN_OR_RETURN(tid, ReadId(body, "mmap tid"));
  CLEW_ASSIGN_OR_RETURN(addr, body.Read<uint64_t>("mmap addr"));
  CLEW_ASSIGN_OR_RETURN(size, body.Read<uint64_t>("mmap len"));
  CLEW_ASSIGN_OR_RETURN(file_offset, body.Read<uint64_t>("mmap pgoff"));
  if (addr + size < addr) {
    return body.Corrupt("mmap at {:#x} with len {:#x} wraps around", addr,
                        size);
  }
  mmap.pid = pid;
  mmap.tid = Tid(tid);
  mmap.addr = TraceeAddr(addr);
  mmap.size_bytes = size;
  mmap.file_offset = file_offset;
  return {};
}

Result<RecordBody> ParseMmap(const RecordHeader& header, ByteReader& body) {
  MmapRecord mmap;
  CLEW_RETURN_IF_ERROR(ReadMmapCommon(body, mmap));
  mmap.executable = (header.misc & kMiscMmapData) == 0;
  CLEW_ASSIGN_OR_RETURN(path,
                        body.ReadText(body.remaining_bytes(), "mmap filename"));
  mmap.path = path;
  return mmap;
}

Status ReadBuildId(ByteReader& body, MmapRecord& mmap) {
  CLEW_ASSIGN_OR_RETURN(size, body.Read<uint8_t>("mmap2 build_id_size"));
  if (size > kBuildIdBytesMax) {
    return body.Corrupt("mmap2 build_id_size is {}, wanted at most {}", size,
                        kBuildIdBytesMax);
  }
  CLEW_RETURN_IF_ERROR(body.Skip(3, "mmap2 build id padding"));
  CLEW_ASSIGN_OR_RETURN(bytes,
                        body.ReadBytes(kBuildIdBytesMax, "mmap2 build_id"));
  mmap.build_id.assign(bytes.begin(), bytes.begin() + size);
  return {};
}

Result<RecordBody> ParseMmap2(const RecordHeader& header, ByteReader& body) {
  MmapRecord mmap;
  CLEW_RETURN_IF_ERROR(ReadMmapCommon(body, mmap));
  if (header.misc & kMiscMmapBuildId) {
    CLEW_RETURN_IF_ERROR(ReadBuildId(body, mmap));
  } else {
    CLEW_RETURN_IF_ERROR(body.Skip(24, "mmap2 device and inode"));
  }
  CLEW_ASSIGN_OR_RETURN(prot, body.Read<uint32_t>("mmap2 prot"));
  CLEW_RETURN_IF_ERROR(body.Skip(4, "mmap2 flags"));
  CLEW_ASSIGN_OR_RETURN(
      path, body.ReadText(body.remaining_bytes(), "mmap2 filename"));
  mmap.executable = (prot & kProtExecute) != 0;
  mmap.path = path;
  return mmap;
}

Result<RecordBody> ParseComm(const RecordHeader& header, ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(pid, ReadId(body, "comm pid"));
  CLEW_ASSIGN_OR_RETURN(tid, ReadId(body, "comm tid"));
  CLEW_ASSIGN_OR_RETURN(name, body.ReadText(body.remaining_bytes(), "comm"));
  return CommRecord{.pid = pid,
                    .tid = Tid(tid),
                    .name = name,
                    .exec = (header.misc & kMiscCommExec) != 0};
}

Result<RecordBody> ParseTask(const RecordHeader& header, ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(pid, ReadId(body, "task pid"));
  CLEW_ASSIGN_OR_RETURN(parent_pid, ReadId(body, "task ppid"));
  CLEW_ASSIGN_OR_RETURN(tid, ReadId(body, "task tid"));
  CLEW_ASSIGN_OR_RETURN(parent_tid, ReadId(body, "task ptid"));
  CLEW_ASSIGN_OR_RETURN(time, body.Read<uint64_t>("task time"));
  return TaskRecord{.exited = header.type == kRecordExit,
                    .pid = pid,
                    .parent_pid = parent_pid,
                    .tid = Tid(tid),
                    .parent_tid = Tid(parent_tid),
                    .time = PerfNanos(time)};
}

Result<RecordBody> ParseSwitch(const RecordHeader& header, ByteReader& body) {
  SwitchRecord record{.out = (header.misc & kMiscSwitchOut) != 0,
                      .other = std::nullopt};
  if (header.type == kRecordSwitchCpuWide) {
    CLEW_RETURN_IF_ERROR(body.Skip(4, "switch next_prev_pid"));
    CLEW_ASSIGN_OR_RETURN(tid, ReadId(body, "switch next_prev_tid"));
    record.other = Tid(tid);
  }
  return record;
}

Result<RecordBody> ParseAux(ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(offset, body.Read<uint64_t>("aux_offset"));
  CLEW_ASSIGN_OR_RETURN(size, body.Read<uint64_t>("aux_size"));
  CLEW_ASSIGN_OR_RETURN(flags, body.Read<uint64_t>("aux flags"));
  if (offset + size < offset) {
    return body.Corrupt("aux_offset {:#x} with aux_size {:#x} wraps around",
                        offset, size);
  }
  return AuxRecord{.aux_offset = offset,
                   .size_bytes = size,
                   .truncated = (flags & kAuxTruncated) != 0,
                   .overwrite = (flags & kAuxOverwrite) != 0};
}

Result<RecordBody> ParseItraceStart(ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(pid, ReadId(body, "itrace_start pid"));
  CLEW_ASSIGN_OR_RETURN(tid, ReadId(body, "itrace_start tid"));
  return ItraceStartRecord{.pid = pid, .tid = Tid(tid)};
}

Result<RecordBody> ParseLost(const RecordHeader& header, ByteReader& body) {
  if (header.type == kRecordLost) {
    CLEW_RETURN_IF_ERROR(body.Skip(8, "lost id"));
  }
  CLEW_ASSIGN_OR_RETURN(count, body.Read<uint64_t>("lost count"));
  return LostRecord{.count = count};
}

// perf's own, tools/perf/util/event.h, struct id_index_entry: id, idx, cpu,
// tid. Behind the entries newer perf has more, of virtual machines.
Result<RecordBody> ParseIdIndex(ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(count, body.Read<uint64_t>("id_index nr"));
  IdIndexRecord index;
  for (uint64_t i = 0; i < count; ++i) {
    CLEW_ASSIGN_OR_RETURN(id, body.Read<uint64_t>("id_index id"));
    CLEW_RETURN_IF_ERROR(body.Skip(8, "id_index idx"));
    CLEW_ASSIGN_OR_RETURN(cpu, body.Read<uint64_t>("id_index cpu"));
    CLEW_ASSIGN_OR_RETURN(tid, body.Read<uint64_t>("id_index tid"));
    if (static_cast<int32_t>(cpu) == kNoCore) {
      index.of_threads.push_back({id, Tid(static_cast<int32_t>(tid))});
    }
  }
  return index;
}

Result<TscConversion> CheckedConversion(const ByteReader& body, uint64_t shift,
                                        uint64_t mult, uint64_t zero) {
  if (shift >= 64 || mult == 0 || mult > UINT32_MAX) {
    return body.Corrupt(
        "time_shift is {}, time_mult is {}; wanted below 64, and 1..{}", shift,
        mult, UINT32_MAX);
  }
  return TscConversion{.shift = static_cast<uint32_t>(shift),
                       .mult = static_cast<uint32_t>(mult),
                       .zero = zero};
}

Result<RecordBody> ParseTimeConv(ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(shift, body.Read<uint64_t>("time_shift"));
  CLEW_ASSIGN_OR_RETURN(mult, body.Read<uint64_t>("time_mult"));
  CLEW_ASSIGN_OR_RETURN(zero, body.Read<uint64_t>("time_zero"));
  CLEW_ASSIGN_OR_RETURN(conversion, CheckedConversion(body, shift, mult, zero));
  return TimeConvRecord{.conversion = conversion};
}

// The order of tools/perf/util/intel-pt.h, from INTEL_PT_PMU_TYPE on. Older
// perf writes fewer; those absent are 0.
enum PtInfoField : size_t {
  kPmuType,
  kTimeShift,
  kTimeMult,
  kTimeZero,
  kCapUserTimeZero,
  kTscBit,
  kNoRetCompBit,
  kHaveSchedSwitch,
  kSnapshotMode,
  kPerCpuMmaps,
  kMtcBit,
  kMtcFreqBits,
  kTscCtcN,
  kTscCtcD,
  kCycBit,
  kMaxNonturboRatio,
  kPtInfoFields,
};

Result<RecordBody> ParseAuxtraceInfo(ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(type, body.Read<uint32_t>("auxtrace_info type"));
  if (type != kAuxtraceIntelPt) {
    return Unsupported(
        "{}: offset {:#x}: AUX area is of type {}, wanted {} (intel_pt)",
        body.source(), body.file_offset() - 4, type, kAuxtraceIntelPt);
  }
  CLEW_RETURN_IF_ERROR(body.Skip(4, "auxtrace_info reserved"));
  std::array<uint64_t, kPtInfoFields> fields = {};
  for (uint64_t& field : fields) {
    if (body.at_end()) {
      break;
    }
    CLEW_ASSIGN_OR_RETURN(value, body.Read<uint64_t>("auxtrace_info priv"));
    field = value;
  }
  std::optional<TscConversion> clock;
  if (fields[kCapUserTimeZero] != 0) {
    CLEW_ASSIGN_OR_RETURN(
        conversion, CheckedConversion(body, fields[kTimeShift],
                                      fields[kTimeMult], fields[kTimeZero]));
    clock = conversion;
  }
  return PtInfoRecord{.pmu_type = fields[kPmuType],
                      .clock = clock,
                      .mtc_bit = fields[kMtcBit],
                      .mtc_freq_mask = fields[kMtcFreqBits],
                      .tsc_bit = fields[kTscBit],
                      .cyc_bit = fields[kCycBit],
                      .ctc_numerator = fields[kTscCtcN],
                      .ctc_denominator = fields[kTscCtcD],
                      .max_nonturbo_ratio = fields[kMaxNonturboRatio],
                      .snapshot = fields[kSnapshotMode] != 0};
}

constexpr std::array<std::string_view, 22> kKernelNames = {"",
                                                           "MMAP",
                                                           "LOST",
                                                           "COMM",
                                                           "EXIT",
                                                           "THROTTLE",
                                                           "UNTHROTTLE",
                                                           "FORK",
                                                           "READ",
                                                           "SAMPLE",
                                                           "MMAP2",
                                                           "AUX",
                                                           "ITRACE_START",
                                                           "LOST_SAMPLES",
                                                           "SWITCH",
                                                           "SWITCH_CPU_WIDE",
                                                           "NAMESPACES",
                                                           "KSYMBOL",
                                                           "BPF_EVENT",
                                                           "CGROUP",
                                                           "TEXT_POKE",
                                                           "AUX_OUTPUT_HW_ID"};
constexpr std::array<std::string_view, 20> kUserNames = {
    "ATTR",           "EVENT_TYPE", "TRACING_DATA",  "BUILD_ID",
    "FINISHED_ROUND", "ID_INDEX",   "AUXTRACE_INFO", "AUXTRACE",
    "AUXTRACE_ERROR", "THREAD_MAP", "CPU_MAP",       "STAT_CONFIG",
    "STAT",           "STAT_ROUND", "EVENT_UPDATE",  "TIME_CONV",
    "FEATURE",        "COMPRESSED", "FINISHED_INIT", "COMPRESSED2"};

}  // namespace

std::string RecordTypeName(uint32_t type) {
  if (type > 0 && type < kKernelNames.size()) {
    return std::string(kKernelNames[type]);
  }
  if (type >= kRecordUserFirst && type - kRecordUserFirst < kUserNames.size()) {
    return std::string(kUserNames[type - kRecordUserFirst]);
  }
  return fmt::format("type {}", type);
}

Result<RecordHeader> ReadRecordHeader(ByteReader& reader) {
  CLEW_ASSIGN_OR_RETURN(type, reader.Read<uint32_t>("record type"));
  CLEW_ASSIGN_OR_RETURN(misc, reader.Read<uint16_t>("record misc"));
  CLEW_ASSIGN_OR_RETURN(size, reader.Read<uint16_t>("record size"));
  if (size < kRecordHeaderBytes) {
    return reader.Corrupt("{} record's size is {}, wanted at least {}",
                          RecordTypeName(type), size, kRecordHeaderBytes);
  }
  return RecordHeader{.type = type, .misc = misc, .size = size};
}

Result<RecordBody> ParseRecordBody(const RecordHeader& header,
                                   ByteReader& body) {
  switch (header.type) {
    case kRecordMmap:
      return ParseMmap(header, body);
    case kRecordMmap2:
      return ParseMmap2(header, body);
    case kRecordComm:
      return ParseComm(header, body);
    case kRecordFork:
    case kRecordExit:
      return ParseTask(header, body);
    case kRecordSwitch:
    case kRecordSwitchCpuWide:
      return ParseSwitch(header, body);
    case kRecordAux:
      return ParseAux(body);
    case kRecordItraceStart:
      return ParseItraceStart(body);
    case kRecordLost:
    case kRecordLostSamples:
      return ParseLost(header, body);
    case kRecordIdIndex:
      return ParseIdIndex(body);
    case kRecordTimeConv:
      return ParseTimeConv(body);
    case kRecordAuxtraceInfo:
      return ParseAuxtraceInfo(body);
    default:
      return RecordBody{};
  }
}

Result<AuxtraceRecord> ParseAuxtrace(ByteReader& body,
                                     uint64_t& size_untrusted) {
  CLEW_ASSIGN_OR_RETURN(size, body.Read<uint64_t>("auxtrace size"));
  CLEW_ASSIGN_OR_RETURN(offset, body.Read<uint64_t>("auxtrace offset"));
  CLEW_RETURN_IF_ERROR(body.Skip(8, "auxtrace reference"));
  CLEW_RETURN_IF_ERROR(body.Skip(4, "auxtrace idx"));
  CLEW_ASSIGN_OR_RETURN(tid, ReadId(body, "auxtrace tid"));
  CLEW_ASSIGN_OR_RETURN(cpu, ReadId(body, "auxtrace cpu"));
  const bool of_thread = cpu == kNoCore && tid > 0;
  if (cpu < 0 && !of_thread) {
    return body.Corrupt(
        "auxtrace cpu is {} and tid is {}, wanted a core's number, or -1 and a "
        "thread's",
        cpu, tid);
  }
  size_untrusted = size;
  return AuxtraceRecord{.aux_offset = offset,
                        .core = of_thread ? StreamOfThread(Tid(tid))
                                          : CoreId(static_cast<uint32_t>(cpu)),
                        .tid = Tid(tid),
                        .bytes = {}};
}

}  // namespace clew::bundle
