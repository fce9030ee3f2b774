#include "bundle/core_dump/core_dump.h"

#include <elf.h>

#include <algorithm>
#include <utility>

#include "bundle/zstd/unzstd.h"
#include "common/inputs.h"

namespace clew::bundle {
Result<CoreDump> CoreDump::Open(const std::string& path, uint64_t size_max) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  CoreDump dump(path);
  std::span<const std::byte> bytes = file.bytes();
  if (IsZstd(bytes)) {
    CLEW_ASSIGN_OR_RETURN(unpacked, Unzstd(bytes, path, size_max));
    dump.unpacked_ = std::move(unpacked);
    bytes = dump.unpacked_;
  } else {
    dump.file_ = std::move(file);
  }
  CLEW_RETURN_IF_ERROR(dump.Parse(bytes));
  return dump;
}

Result<CoreDump> CoreDump::Over(std::span<const std::byte> bytes,
                                const std::string& name) {
  CoreDump dump(name);
  CLEW_RETURN_IF_ERROR(dump.Parse(bytes));
  return dump;
}

Status CoreDump::Parse(std::span<const std::byte> bytes) {
  CLEW_ASSIGN_OR_RETURN(layout, ReadDumpLayout(bytes, name_));
  const auto take = [this](const DumpNote& note) { return TakeNote(note); };
  for (const Elf64_Phdr& segment : layout.segments) {
    if (segment.p_type == PT_NOTE) {
      CLEW_RETURN_IF_ERROR(ForEachDumpNote(bytes, segment, name_, take));
    } else if (segment.p_type == PT_LOAD && segment.p_memsz != 0) {
      AddSegment(bytes, segment);
    }
  }
  if (threads_.empty()) {
    return CorruptInput("{}: no thread (NT_PRSTATUS) in it", name_);
  }
  return CheckOverlaps();
}

void CoreDump::AddSegment(std::span<const std::byte> bytes,
                          const Elf64_Phdr& header) {
  const uint32_t prot = ((header.p_flags & PF_R) ? kProtRead : 0) |
                        ((header.p_flags & PF_W) ? kProtWrite : 0) |
                        ((header.p_flags & PF_X) ? kProtExec : 0);
  segments_.push_back(
      {.addr = TraceeAddr(header.p_vaddr),
       .size_bytes = header.p_memsz,
       .prot = prot,
       .bytes = bytes.subspan(header.p_offset, header.p_filesz)});
}

Status CoreDump::TakeNote(const DumpNote& note) {
  if (note.type == NT_PRSTATUS) {
    CLEW_ASSIGN_OR_RETURN(thread, ReadDumpThread(note, name_));
    threads_.push_back(thread);
  } else if (note.type == NT_SIGINFO && !signal_) {
    // The first one is the failing thread's.
    CLEW_ASSIGN_OR_RETURN(signal, ReadDumpSignal(note, name_));
    signal_ = signal;
  } else if (note.type == NT_AUXV && vdso_addr_ == TraceeAddr(0)) {
    return TakeAuxv(note);
  } else if (note.type == NT_FILE && mappings_.empty()) {
    return ReadDumpMappings(note, name_, mappings_);
  }
  return {};
}

Status CoreDump::TakeAuxv(const DumpNote& note) {
  constexpr size_t kEntryBytes = sizeof(Elf64_auxv_t);
  if (note.desc.size() % kEntryBytes != 0) {
    return CorruptInput(
        "{}: offset {:#x}: NT_AUXV has {} bytes, wanted a multiple of {}",
        name_, note.offset, note.desc.size(), kEntryBytes);
  }
  const auto value = [&note](uint64_t type) {
    return TraceeAddr(AuxiliaryValue(note.desc, type).value_or(0));
  };
  vdso_addr_ = value(AT_SYSINFO_EHDR);
  entry_ = value(AT_ENTRY);
  return {};
}

Status CoreDump::CheckOverlaps() {
  std::sort(segments_.begin(), segments_.end(),
            [](const DumpSegment& a, const DumpSegment& b) {
              return a.addr < b.addr;
            });
  for (size_t i = 1; i < segments_.size(); ++i) {
    const DumpSegment& before = segments_[i - 1];
    if (segments_[i].addr.as_int() - before.addr.as_int() < before.size_bytes) {
      return CorruptInput("{}: segments at {:#x} and {:#x} overlap", name_,
                          before.addr, segments_[i].addr);
    }
  }
  return {};
}

// Null if there is none.
const DumpSegment* CoreDump::SegmentAt(TraceeAddr addr) const {
  const auto after =
      std::ranges::upper_bound(segments_, addr, {}, &DumpSegment::addr);
  if (after == segments_.begin()) {
    return nullptr;
  }
  const DumpSegment& segment = *std::prev(after);
  return addr.as_int() - segment.addr.as_int() < segment.size_bytes ? &segment
                                                                    : nullptr;
}

bool CoreDump::MayRunAt(TraceeAddr addr) const {
  const DumpSegment* segment = SegmentAt(addr);
  return segment == nullptr || (segment->prot & kProtExec) != 0;
}

std::span<const std::byte> CoreDump::vdso() const {
  const DumpSegment* segment = SegmentAt(vdso_addr_);
  if (vdso_addr_ == TraceeAddr(0) || segment == nullptr) {
    return {};
  }
  const uint64_t skip = vdso_addr_.as_int() - segment->addr.as_int();
  return skip < segment->bytes.size() ? segment->bytes.subspan(skip)
                                      : std::span<const std::byte>();
}

bool CoreDump::Read(TraceeAddr addr, std::span<std::byte> out) const {
  uint64_t at = addr.as_int();
  while (!out.empty()) {
    const DumpSegment* found = SegmentAt(TraceeAddr(at));
    if (found == nullptr) {
      return false;
    }
    const uint64_t skip = at - found->addr.as_int();
    if (skip >= found->bytes.size()) {
      return false;
    }
    const auto part = found->bytes.subspan(
        skip, std::min<uint64_t>(out.size(), found->bytes.size() - skip));
    std::copy(part.begin(), part.end(), out.begin());
    out = out.subspan(part.size());
    at += part.size();
  }
  return true;
}

}  // namespace clew::bundle
