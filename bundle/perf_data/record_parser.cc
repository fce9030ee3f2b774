#include "bundle/perf_data/record_parser.h"

#include <array>
#include <string_view>
#include <type_traits>

#include "bundle/perf_data/kernel_records.h"
#include "bundle/perf_data/pt_stream.h"
#include "bundle/perf_data/record_type.h"

namespace clew::bundle {
namespace {

// tools/perf/util/auxtrace.h, PERF_AUXTRACE_INTEL_PT.
constexpr uint32_t kAuxtraceIntelPt = 1;
// perf's `cpu` of what is a thread's, on whichever core.
constexpr int32_t kNoCore = -1;

MmapRecord Kept(const MmapView& mmap) {
  return {.pid = mmap.pid,
          .tid = mmap.tid,
          .addr = mmap.addr,
          .size_bytes = mmap.size_bytes,
          .file_offset = mmap.file_offset,
          .executable = mmap.executable,
          .build_id = {mmap.build_id.begin(), mmap.build_id.end()},
          .path = std::string(mmap.path)};
}

RecordBody BodyOf(const KernelRecord& record) {
  return std::visit(
      [](const auto& body) -> RecordBody {
        if constexpr (std::is_same_v<decltype(body), const MmapView&>) {
          return Kept(body);
        } else {
          return body;
        }
      },
      record);
}

// tools/perf/util/event.h, struct id_index_entry: id, idx, cpu, tid. Behind the
// entries newer perf has more, of virtual machines.
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

}  // namespace

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
    case kRecordIdIndex:
      return ParseIdIndex(body);
    case kRecordTimeConv:
      return ParseTimeConv(body);
    case kRecordAuxtraceInfo:
      return ParseAuxtraceInfo(body);
    default: {
      CLEW_ASSIGN_OR_RETURN(record,
                            ParseKernelRecord(header.type, header.misc, body));
      return BodyOf(record);
    }
  }
}

Result<AuxtraceRecord> ParseAuxtrace(ByteReader& body,
                                     uint64_t& size_untrusted) {
  CLEW_ASSIGN_OR_RETURN(size, body.Read<uint64_t>("auxtrace size"));
  CLEW_ASSIGN_OR_RETURN(offset, body.Read<uint64_t>("auxtrace offset"));
  CLEW_RETURN_IF_ERROR(body.Skip(8, "auxtrace reference"));
  CLEW_RETURN_IF_ERROR(body.Skip(4, "auxtrace idx"));
  CLEW_ASSIGN_OR_RETURN(tid, body.Read<int32_t>("auxtrace tid"));
  CLEW_ASSIGN_OR_RETURN(cpu, body.Read<int32_t>("auxtrace cpu"));
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
