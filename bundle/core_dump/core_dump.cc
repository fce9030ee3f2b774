#include "bundle/core_dump/core_dump.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "bundle/zstd/unzstd.h"
#include "common/byte_reader.h"

namespace clew::bundle {
namespace {

// linux/elfcore.h, struct elf_prstatus for x86-64.
constexpr uint64_t kPrstatusBytes = 336;
constexpr uint64_t kCursigOffset = 12;
constexpr uint64_t kPidOffset = 32;
constexpr uint64_t kRegsOffset = 112;
// sys/user.h, struct user_regs_struct: which of our registers each one is, and
// -1 for those that are not general.
constexpr std::array<int, 15> kGprOrder = {kR15, kR14, kR13, kR12, kRbp,
                                           kRbx, kR11, kR10, kR9,  kR8,
                                           kRax, kRcx, kRdx, kRsi, kRdi};
constexpr size_t kRipIndex = 16;
constexpr size_t kRflagsIndex = 18;
constexpr size_t kRspIndex = 19;
constexpr size_t kFsBaseIndex = 21;
constexpr size_t kGsBaseIndex = 22;

// asm-generic/siginfo.h, siginfo_t on 64-bit hosts.
constexpr uint64_t kSiginfoBytes = 128;
constexpr uint64_t kSiCodeOffset = 8;
constexpr uint64_t kSiAddrOffset = 16;

uint64_t Padded(uint64_t size) { return (size + 3) & ~uint64_t{3}; }

template <class T>
T Load(std::span<const std::byte> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

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

Result<std::span<const std::byte>> CoreDump::Part(
    std::span<const std::byte> bytes, uint64_t offset, uint64_t size,
    std::string_view what) const {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    return CorruptInput("{}: {} is {} bytes at offset {:#x}, the file has {}",
                        name_, what, size, offset, bytes.size());
  }
  return bytes.subspan(offset, size);
}

Status CoreDump::Parse(std::span<const std::byte> bytes) {
  CLEW_ASSIGN_OR_RETURN(ehdr_bytes,
                        Part(bytes, 0, sizeof(Elf64_Ehdr), "ELF header"));
  const auto ehdr = Load<Elf64_Ehdr>(ehdr_bytes, 0);
  if (std::memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 ||
      ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
      ehdr.e_ident[EI_DATA] != ELFDATA2LSB) {
    return CorruptInput("{}: offset 0x0: no 64-bit little-endian ELF file",
                        name_);
  }
  if (ehdr.e_type != ET_CORE || ehdr.e_machine != EM_X86_64) {
    return CorruptInput(
        "{}: offset 0x10: e_type is {}, e_machine {}; wanted {} (core), {} "
        "(x86-64)",
        name_, ehdr.e_type, ehdr.e_machine, ET_CORE, EM_X86_64);
  }
  if (ehdr.e_phentsize != sizeof(Elf64_Phdr)) {
    return CorruptInput("{}: offset 0x36: e_phentsize is {}, wanted {}", name_,
                        ehdr.e_phentsize, sizeof(Elf64_Phdr));
  }
  uint64_t count = ehdr.e_phnum;
  if (count == PN_XNUM) {
    CLEW_ASSIGN_OR_RETURN(shdr, Part(bytes, ehdr.e_shoff, sizeof(Elf64_Shdr),
                                     "first section header"));
    count = Load<Elf64_Shdr>(shdr, 0).sh_info;
  }
  CLEW_RETURN_IF_ERROR(
      Part(bytes, ehdr.e_phoff, count * sizeof(Elf64_Phdr), "program headers"));
  for (uint64_t i = 0; i < count; ++i) {
    CLEW_RETURN_IF_ERROR(
        ParseSegment(bytes, ehdr.e_phoff + i * sizeof(Elf64_Phdr)));
  }
  if (threads_.empty()) {
    return CorruptInput("{}: no thread (NT_PRSTATUS) in it", name_);
  }
  return CheckOverlaps();
}

Status CoreDump::ParseSegment(std::span<const std::byte> bytes,
                              uint64_t header_offset) {
  const auto phdr = Load<Elf64_Phdr>(bytes, header_offset);
  if (phdr.p_type == PT_NOTE) {
    return ParseNotes(bytes, phdr.p_offset, phdr.p_filesz);
  }
  if (phdr.p_type != PT_LOAD || phdr.p_memsz == 0) {
    return {};
  }
  if (phdr.p_vaddr + phdr.p_memsz < phdr.p_vaddr ||
      phdr.p_filesz > phdr.p_memsz) {
    return CorruptInput(
        "{}: offset {:#x}: segment at {:#x} has p_memsz {:#x}, p_filesz {:#x}",
        name_, header_offset, phdr.p_vaddr, phdr.p_memsz, phdr.p_filesz);
  }
  CLEW_ASSIGN_OR_RETURN(content,
                        Part(bytes, phdr.p_offset, phdr.p_filesz,
                             fmt::format("segment at {:#x}", phdr.p_vaddr)));
  const uint32_t prot = ((phdr.p_flags & PF_R) ? kProtRead : 0) |
                        ((phdr.p_flags & PF_W) ? kProtWrite : 0) |
                        ((phdr.p_flags & PF_X) ? kProtExec : 0);
  segments_.push_back({.addr = TraceeAddr(phdr.p_vaddr),
                       .size_bytes = phdr.p_memsz,
                       .prot = prot,
                       .bytes = content});
  return {};
}

Status CoreDump::ParseNotes(std::span<const std::byte> bytes, uint64_t offset,
                            uint64_t size) {
  CLEW_ASSIGN_OR_RETURN(notes, Part(bytes, offset, size, "notes"));
  ByteReader reader(notes, name_, offset);
  while (!reader.at_end()) {
    CLEW_ASSIGN_OR_RETURN(name_size, reader.Read<uint32_t>("n_namesz"));
    CLEW_ASSIGN_OR_RETURN(desc_size, reader.Read<uint32_t>("n_descsz"));
    CLEW_ASSIGN_OR_RETURN(type, reader.Read<uint32_t>("n_type"));
    CLEW_RETURN_IF_ERROR(reader.Skip(Padded(name_size), "note name"));
    const uint64_t at = reader.file_offset();
    CLEW_ASSIGN_OR_RETURN(desc,
                          reader.ReadBytes(desc_size, "note description"));
    CLEW_RETURN_IF_ERROR(reader.Skip(
        std::min(Padded(desc_size) - desc_size, reader.remaining_bytes()),
        "note padding"));
    if (type == NT_PRSTATUS) {
      CLEW_RETURN_IF_ERROR(ParsePrstatus(desc, at));
    } else if (type == NT_SIGINFO && !signal_) {
      CLEW_RETURN_IF_ERROR(ParseSiginfo(desc, at));
    } else if (type == NT_AUXV && vdso_addr_ == TraceeAddr(0)) {
      CLEW_RETURN_IF_ERROR(ParseAuxv(desc, at));
    } else if (type == NT_FILE && mappings_.empty()) {
      CLEW_RETURN_IF_ERROR(ParseFiles(desc, at));
    }
  }
  return {};
}

Status CoreDump::ParsePrstatus(std::span<const std::byte> desc,
                               uint64_t offset) {
  if (desc.size() < kPrstatusBytes) {
    return CorruptInput("{}: offset {:#x}: NT_PRSTATUS has {} bytes, wanted {}",
                        name_, offset, desc.size(), kPrstatusBytes);
  }
  const auto reg = [desc](size_t index) {
    return Load<uint64_t>(desc, kRegsOffset + 8 * index);
  };
  CoreThread thread;
  thread.thread = Tid(Load<int32_t>(desc, kPidOffset));
  thread.signal = Load<int16_t>(desc, kCursigOffset);
  for (size_t i = 0; i < kGprOrder.size(); ++i) {
    thread.gpr[static_cast<size_t>(kGprOrder[i])] = reg(i);
  }
  thread.gpr[kRsp] = reg(kRspIndex);
  thread.rip = TraceeAddr(reg(kRipIndex));
  thread.rflags = reg(kRflagsIndex);
  thread.fs_base = reg(kFsBaseIndex);
  thread.gs_base = reg(kGsBaseIndex);
  threads_.push_back(thread);
  return {};
}

// The first one is the failing thread's.
Status CoreDump::ParseSiginfo(std::span<const std::byte> desc,
                              uint64_t offset) {
  if (desc.size() < kSiginfoBytes) {
    return CorruptInput("{}: offset {:#x}: NT_SIGINFO has {} bytes, wanted {}",
                        name_, offset, desc.size(), kSiginfoBytes);
  }
  signal_ = CoreSignal{.signal = Load<int32_t>(desc, 0),
                       .code = Load<int32_t>(desc, kSiCodeOffset),
                       .addr = TraceeAddr(Load<uint64_t>(desc, kSiAddrOffset))};
  return {};
}

// getauxval(3): pairs of a type and a value.
Status CoreDump::ParseAuxv(std::span<const std::byte> desc, uint64_t offset) {
  ByteReader reader(desc, name_, offset);
  while (!reader.at_end()) {
    CLEW_ASSIGN_OR_RETURN(type, reader.Read<uint64_t>("NT_AUXV a_type"));
    CLEW_ASSIGN_OR_RETURN(value, reader.Read<uint64_t>("NT_AUXV a_val"));
    if (type == AT_SYSINFO_EHDR) {
      vdso_addr_ = TraceeAddr(value);
    } else if (type == AT_ENTRY) {
      entry_ = TraceeAddr(value);
    }
  }
  return {};
}

// Source: linux fs/binfmt_elf.c, fill_files_note: count, page size, {start,
// end, offset in pages} each, then the names.
Status CoreDump::ParseFiles(std::span<const std::byte> desc, uint64_t offset) {
  ByteReader reader(desc, name_, offset);
  CLEW_ASSIGN_OR_RETURN(count, reader.Read<uint64_t>("NT_FILE count"));
  CLEW_ASSIGN_OR_RETURN(page_bytes, reader.Read<uint64_t>("NT_FILE page_size"));
  if (count > kMappingsMax) {
    return CorruptInput("{}: offset {:#x}: NT_FILE count is {}, wanted <= {}",
                        name_, offset, count, kMappingsMax);
  }
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = reader.file_offset();
    CLEW_ASSIGN_OR_RETURN(start, reader.Read<uint64_t>("NT_FILE start"));
    CLEW_ASSIGN_OR_RETURN(end, reader.Read<uint64_t>("NT_FILE end"));
    CLEW_ASSIGN_OR_RETURN(pages, reader.Read<uint64_t>("NT_FILE file_ofs"));
    uint64_t file_offset = 0;
    if (end <= start ||
        __builtin_mul_overflow(pages, page_bytes, &file_offset)) {
      return CorruptInput(
          "{}: offset {:#x}: NT_FILE start is {:#x}, end {:#x}, file_ofs {:#x} "
          "pages of {:#x}",
          name_, at, start, end, pages, page_bytes);
    }
    mappings_.push_back({.addr = TraceeAddr(start),
                         .size_bytes = end - start,
                         .file_offset = file_offset,
                         .path = {}});
  }
  CLEW_ASSIGN_OR_RETURN(
      names, reader.ReadBytes(reader.remaining_bytes(), "NT_FILE names"));
  size_t at = 0;
  for (CoreMapping& mapping : mappings_) {
    const auto rest = names.subspan(at);
    const auto end = std::ranges::find(rest, std::byte{0});
    if (end == rest.end()) {
      return CorruptInput(
          "{}: offset {:#x}: NT_FILE has {} mappings and fewer names", name_,
          offset, count);
    }
    mapping.path.assign(reinterpret_cast<const char*>(rest.data()),
                        static_cast<size_t>(end - rest.begin()));
    at += mapping.path.size() + 1;
  }
  return {};
}

Status CoreDump::CheckOverlaps() {
  std::sort(segments_.begin(), segments_.end(),
            [](const CoreSegment& a, const CoreSegment& b) {
              return a.addr < b.addr;
            });
  for (size_t i = 1; i < segments_.size(); ++i) {
    const CoreSegment& before = segments_[i - 1];
    if (segments_[i].addr.as_int() - before.addr.as_int() < before.size_bytes) {
      return CorruptInput("{}: segments at {:#x} and {:#x} overlap", name_,
                          before.addr, segments_[i].addr);
    }
  }
  return {};
}

// Null if there is none.
const CoreSegment* CoreDump::SegmentAt(TraceeAddr addr) const {
  const auto after =
      std::ranges::upper_bound(segments_, addr, {}, &CoreSegment::addr);
  if (after == segments_.begin()) {
    return nullptr;
  }
  const CoreSegment& segment = *std::prev(after);
  return addr.as_int() - segment.addr.as_int() < segment.size_bytes ? &segment
                                                                    : nullptr;
}

bool CoreDump::MayRunAt(TraceeAddr addr) const {
  const CoreSegment* segment = SegmentAt(addr);
  return segment == nullptr || (segment->prot & kProtExec) != 0;
}

std::span<const std::byte> CoreDump::vdso() const {
  const CoreSegment* segment = SegmentAt(vdso_addr_);
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
    const CoreSegment* found = SegmentAt(TraceeAddr(at));
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
