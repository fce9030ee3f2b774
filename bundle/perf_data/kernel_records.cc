#include "bundle/perf_data/kernel_records.h"

#include <sys/mman.h>

#include "common/build_id.h"

namespace clew::bundle {
namespace {

// Reads to the end of the record; the kernel pads a text with NULs.
Result<std::string_view> ReadLastText(ByteReader& body,
                                      std::string_view field) {
  CLEW_ASSIGN_OR_RETURN(bytes, body.ReadBytes(body.remaining_bytes(), field));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              bytes.size());
  const size_t length = text.find('\0');
  if (length == std::string_view::npos) {
    return body.Corrupt("{} has {} bytes and no NUL, wanted one", field,
                        text.size());
  }
  return text.substr(0, length);
}

Status ReadMmapCommon(ByteReader& body, MmapView& mmap) {
  CLEW_ASSIGN_OR_RETURN(pid, body.Read<int32_t>("mmap pid"));
  CLEW_ASSIGN_OR_RETURN(tid, body.Read<int32_t>("mmap tid"));
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

Result<KernelRecord> ParseMmap(uint16_t misc, ByteReader& body) {
  MmapView mmap;
  CLEW_RETURN_IF_ERROR(ReadMmapCommon(body, mmap));
  mmap.executable = (misc & PERF_RECORD_MISC_MMAP_DATA) == 0;
  CLEW_ASSIGN_OR_RETURN(path, ReadLastText(body, "mmap filename"));
  mmap.path = path;
  return mmap;
}

Status ReadBuildId(ByteReader& body, MmapView& mmap) {
  CLEW_ASSIGN_OR_RETURN(size, body.Read<uint8_t>("mmap2 build_id_size"));
  if (size > kBuildIdBytesMax) {
    return body.Corrupt("mmap2 build_id_size is {}, wanted at most {}", size,
                        kBuildIdBytesMax);
  }
  CLEW_RETURN_IF_ERROR(body.Skip(3, "mmap2 build id padding"));
  CLEW_ASSIGN_OR_RETURN(bytes,
                        body.ReadBytes(kBuildIdBytesMax, "mmap2 build_id"));
  mmap.build_id = bytes.first(size);
  return {};
}

Result<KernelRecord> ParseMmap2(uint16_t misc, ByteReader& body) {
  MmapView mmap;
  CLEW_RETURN_IF_ERROR(ReadMmapCommon(body, mmap));
  if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
    CLEW_RETURN_IF_ERROR(ReadBuildId(body, mmap));
  } else {
    CLEW_RETURN_IF_ERROR(body.Skip(24, "mmap2 device and inode"));
  }
  CLEW_ASSIGN_OR_RETURN(prot, body.Read<uint32_t>("mmap2 prot"));
  CLEW_RETURN_IF_ERROR(body.Skip(4, "mmap2 flags"));
  CLEW_ASSIGN_OR_RETURN(path, ReadLastText(body, "mmap2 filename"));
  mmap.executable = (prot & PROT_EXEC) != 0;
  mmap.path = path;
  return mmap;
}

Result<KernelRecord> ParseComm(uint16_t misc, ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(pid, body.Read<int32_t>("comm pid"));
  CLEW_ASSIGN_OR_RETURN(tid, body.Read<int32_t>("comm tid"));
  CLEW_ASSIGN_OR_RETURN(name, ReadLastText(body, "comm"));
  return CommRecord{.pid = pid,
                    .tid = Tid(tid),
                    .name = name,
                    .exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0};
}

Result<KernelRecord> ParseTask(bool exited, ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(pid, body.Read<int32_t>("task pid"));
  CLEW_ASSIGN_OR_RETURN(parent_pid, body.Read<int32_t>("task ppid"));
  CLEW_ASSIGN_OR_RETURN(tid, body.Read<int32_t>("task tid"));
  CLEW_ASSIGN_OR_RETURN(parent_tid, body.Read<int32_t>("task ptid"));
  CLEW_RETURN_IF_ERROR(body.Skip(8, "task time"));
  return TaskRecord{.exited = exited,
                    .pid = pid,
                    .parent_pid = parent_pid,
                    .tid = Tid(tid),
                    .parent_tid = Tid(parent_tid)};
}

// The other thread of SWITCH_CPU_WIDE has a record of its own.
Result<KernelRecord> ParseSwitch(uint32_t type, uint16_t misc,
                                 ByteReader& body) {
  if (type == PERF_RECORD_SWITCH_CPU_WIDE) {
    CLEW_RETURN_IF_ERROR(body.Skip(4, "switch next_prev_pid"));
    CLEW_RETURN_IF_ERROR(body.Skip(4, "switch next_prev_tid"));
  }
  return SwitchRecord{.out = (misc & PERF_RECORD_MISC_SWITCH_OUT) != 0};
}

Result<KernelRecord> ParseAux(ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(offset, body.Read<uint64_t>("aux_offset"));
  CLEW_ASSIGN_OR_RETURN(size, body.Read<uint64_t>("aux_size"));
  CLEW_ASSIGN_OR_RETURN(flags, body.Read<uint64_t>("aux flags"));
  if (offset + size < offset) {
    return body.Corrupt("aux_offset {:#x} with aux_size {:#x} wraps around",
                        offset, size);
  }
  return AuxRecord{.offset_bytes = offset, .size_bytes = size, .flags = flags};
}

Result<KernelRecord> ParseItraceStart(ByteReader& body) {
  CLEW_ASSIGN_OR_RETURN(pid, body.Read<int32_t>("itrace_start pid"));
  CLEW_ASSIGN_OR_RETURN(tid, body.Read<int32_t>("itrace_start tid"));
  return ItraceStartRecord{.pid = pid, .tid = Tid(tid)};
}

Result<KernelRecord> ParseLost(bool samples, ByteReader& body) {
  if (!samples) {
    CLEW_RETURN_IF_ERROR(body.Skip(8, "lost id"));
  }
  CLEW_ASSIGN_OR_RETURN(count, body.Read<uint64_t>("lost count"));
  return LostRecord{.count = count, .samples = samples};
}

}  // namespace

Result<KernelRecord> ParseKernelRecord(uint32_t type, uint16_t misc,
                                       ByteReader& body) {
  switch (type) {
    case PERF_RECORD_MMAP:
      return ParseMmap(misc, body);
    case PERF_RECORD_MMAP2:
      return ParseMmap2(misc, body);
    case PERF_RECORD_COMM:
      return ParseComm(misc, body);
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
      return ParseTask(type == PERF_RECORD_EXIT, body);
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
      return ParseSwitch(type, misc, body);
    case PERF_RECORD_AUX:
      return ParseAux(body);
    case PERF_RECORD_ITRACE_START:
      return ParseItraceStart(body);
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
      return ParseLost(type == PERF_RECORD_LOST_SAMPLES, body);
    default:
      return KernelRecord{};
  }
}

}  // namespace clew::bundle
