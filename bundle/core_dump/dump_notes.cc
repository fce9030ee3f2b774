#include "bundle/core_dump/dump_notes.h"

#include <signal.h>
#include <sys/procfs.h>
#include <sys/user.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/byte_reader.h"
#include "common/user_registers.h"

namespace clew::bundle {
namespace {

template <class T>
Result<T> ReadStruct(const DumpNote& note, const std::string& name,
                     const char* type) {
  if (note.desc.size() < sizeof(T)) {
    return CorruptInput("{}: offset {:#x}: {} has {} bytes, wanted {}", name,
                        note.offset, type, note.desc.size(), sizeof(T));
  }
  T value;
  std::memcpy(&value, note.desc.data(), sizeof value);
  return value;
}

// NT_FILE: count and page size, then {start, end, offset in pages} each.
constexpr uint64_t kFilesHeadBytes = 16;
constexpr uint64_t kFileBytes = 24;

Result<DumpMapping> ReadMapping(ByteReader& ranges, uint64_t page_bytes,
                                const std::string& name) {
  const uint64_t at = ranges.file_offset();
  CLEW_ASSIGN_OR_RETURN(start, ranges.Read<uint64_t>("NT_FILE start"));
  CLEW_ASSIGN_OR_RETURN(end, ranges.Read<uint64_t>("NT_FILE end"));
  CLEW_ASSIGN_OR_RETURN(pages, ranges.Read<uint64_t>("NT_FILE file_ofs"));
  uint64_t file_offset = 0;
  if (end <= start || __builtin_mul_overflow(pages, page_bytes, &file_offset)) {
    return CorruptInput(
        "{}: offset {:#x}: NT_FILE start is {:#x}, end {:#x}, file_ofs {:#x} "
        "pages of {:#x}",
        name, at, start, end, pages, page_bytes);
  }
  return DumpMapping{.addr = TraceeAddr(start),
                     .size_bytes = end - start,
                     .file_offset = file_offset,
                     .path = {}};
}

}  // namespace

Result<DumpThread> ReadDumpThread(const DumpNote& note,
                                  const std::string& name) {
  CLEW_ASSIGN_OR_RETURN(status,
                        ReadStruct<elf_prstatus>(note, name, "NT_PRSTATUS"));
  user_regs_struct registers;
  static_assert(sizeof registers == sizeof status.pr_reg);
  std::memcpy(&registers, &status.pr_reg, sizeof registers);
  DumpThread thread;
  thread.thread = Tid(status.pr_pid);
  thread.signal = status.pr_cursig;
  for (size_t i = 0; i < kUserGprs.size(); ++i) {
    thread.gpr[i] = registers.*kUserGprs[i];
  }
  thread.rip = TraceeAddr(registers.rip);
  thread.rflags = registers.eflags;
  thread.fs_base = registers.fs_base;
  thread.gs_base = registers.gs_base;
  return thread;
}

Result<DumpSignal> ReadDumpSignal(const DumpNote& note,
                                  const std::string& name) {
  CLEW_ASSIGN_OR_RETURN(info, ReadStruct<siginfo_t>(note, name, "NT_SIGINFO"));
  uint64_t addr = 0;
  static_assert(sizeof addr == sizeof info.si_addr);
  std::memcpy(&addr, static_cast<const void*>(&info.si_addr), sizeof addr);
  return DumpSignal{
      .signal = info.si_signo, .code = info.si_code, .addr = TraceeAddr(addr)};
}

Status ReadDumpMappings(const DumpNote& note, const std::string& name,
                        std::vector<DumpMapping>& mappings) {
  ByteReader ranges(note.desc, name, note.offset);
  CLEW_ASSIGN_OR_RETURN(count, ranges.Read<uint64_t>("NT_FILE count"));
  CLEW_ASSIGN_OR_RETURN(page_bytes, ranges.Read<uint64_t>("NT_FILE page_size"));
  const uint64_t wanted = std::min(
      kDumpMappingsMax, (note.desc.size() - kFilesHeadBytes) / kFileBytes);
  if (count > wanted) {
    return CorruptInput("{}: offset {:#x}: NT_FILE count is {}, wanted <= {}",
                        name, note.offset, count, wanted);
  }
  const auto text = note.desc.subspan(kFilesHeadBytes + count * kFileBytes);
  std::string_view names(reinterpret_cast<const char*>(text.data()),
                         text.size());
  for (uint64_t i = 0; i < count; ++i) {
    CLEW_ASSIGN_OR_RETURN(mapping, ReadMapping(ranges, page_bytes, name));
    const size_t end = names.find('\0');
    if (end == std::string_view::npos) {
      return CorruptInput(
          "{}: offset {:#x}: NT_FILE has {} mappings and fewer names", name,
          note.offset, count);
    }
    mapping.path = names.substr(0, end);
    names.remove_prefix(end + 1);
    mappings.push_back(std::move(mapping));
  }
  return {};
}

std::optional<uint64_t> AuxiliaryValue(std::span<const std::byte> auxv,
                                       uint64_t type) {
  Elf64_auxv_t entry;
  for (; auxv.size() >= sizeof entry; auxv = auxv.subspan(sizeof entry)) {
    std::memcpy(&entry, auxv.data(), sizeof entry);
    if (entry.a_type == type) {
      return entry.a_un.a_val;
    }
  }
  return std::nullopt;
}

}  // namespace clew::bundle
