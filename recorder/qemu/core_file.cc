#include "recorder/qemu/core_file.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "common/inputs.h"
#include "common/os/fd.h"
#include "common/round_up.h"
#include "common/user_registers.h"
#include "recorder/qemu/page_content.h"

namespace clew::recorder {
namespace {

class Notes {
 public:
  void Add(std::string_view owner, uint32_t type,
           std::span<const std::byte> body) {
    const Elf64_Nhdr head = {
        .n_namesz = static_cast<Elf64_Word>(owner.size() + 1),
        .n_descsz = static_cast<Elf64_Word>(body.size()),
        .n_type = type};
    Put(std::as_bytes(std::span(&head, 1)));
    Put(std::as_bytes(std::span(owner)));
    bytes_.push_back(std::byte{0});
    Pad();
    Put(body);
    Pad();
  }
  template <class T>
  void AddStruct(uint32_t type, const T& body) {
    Add("CORE", type, std::as_bytes(std::span(&body, 1)));
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void Put(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void Pad() { bytes_.resize(PaddedNoteBytes(bytes_.size())); }
  std::vector<std::byte> bytes_;
};

user_regs_struct ToUserRegs(const DumpedThread& t) {
  user_regs_struct r = {};
  for (size_t i = 0; i < kUserGprs.size(); ++i) {
    r.*kUserGprs[i] = t.gpr[i];
  }
  r.orig_rax = ~0ull;  // not in a system call that gdb should restart
  r.rip = t.rip;
  r.eflags = t.rflags;
  r.fs_base = t.fs_base;
  r.gs_base = t.gs_base;
  r.cs = 0x33;
  r.ss = 0x2b;
  return r;
}

elf_prstatus PrStatus(const DumpedProcess& dump, const DumpedThread& thread) {
  elf_prstatus status = {};
  status.pr_info.si_signo = dump.signal;
  status.pr_cursig = static_cast<short>(dump.signal);
  status.pr_pid = thread.thread.as_int();
  const user_regs_struct regs = ToUserRegs(thread);
  static_assert(sizeof(regs) == sizeof(status.pr_reg));
  std::memcpy(&status.pr_reg, &regs, sizeof(regs));
  return status;
}

elf_prpsinfo PrPsInfo(const DumpedProcess& dump) {
  elf_prpsinfo info = {};
  info.pr_sname = 'R';
  info.pr_pid = dump.process;
  dump.program.copy(info.pr_fname, sizeof(info.pr_fname) - 1);
  dump.arguments.copy(info.pr_psargs, sizeof(info.pr_psargs) - 1);
  return info;
}

// count, page size, {begin, end, offset in pages} each, then the names.
std::vector<std::byte> FileNote(std::span<const GuestRegion> regions) {
  std::vector<uint64_t> numbers = {0, kPageBytes};
  std::string names;
  for (const GuestRegion& region : regions) {
    if (!region.name.empty() && region.name[0] == '/') {
      ++numbers[0];
      numbers.insert(numbers.end(),
                     {region.addr, region.addr + region.size_bytes,
                      region.file_offset / kPageBytes});
      names.append(region.name).push_back('\0');
    }
  }
  std::vector<std::byte> note;
  const auto head = std::as_bytes(std::span(numbers));
  note.insert(note.end(), head.begin(), head.end());
  const auto tail = std::as_bytes(std::span(names));
  note.insert(note.end(), tail.begin(), tail.end());
  return note;
}

Notes MakeNotes(const DumpedProcess& dump,
                std::span<const GuestRegion> regions) {
  Notes notes;
  for (size_t i = 0; i < dump.threads.size(); ++i) {
    notes.AddStruct(NT_PRSTATUS, PrStatus(dump, dump.threads[i]));
    if (i > 0) {
      continue;
    }
    notes.AddStruct(NT_PRPSINFO, PrPsInfo(dump));
    siginfo_t info = {};
    info.si_signo = dump.signal;
    info.si_code = dump.code;
    info.si_addr = reinterpret_cast<void*>(dump.fault_addr);
    notes.AddStruct(NT_SIGINFO, info);
    notes.Add("CORE", NT_AUXV, dump.auxv);
    notes.Add("CORE", NT_FILE, FileNote(regions));
  }
  return notes;
}

// Files of which code is mapped: the bundle has copies of them (images/).
std::set<std::string_view> FilesWithCode(std::span<const GuestRegion> regions) {
  std::set<std::string_view> files;
  for (const GuestRegion& region : regions) {
    if (region.name.starts_with('/') && (region.prot & kProtExec) != 0) {
      files.insert(region.name);
    }
  }
  return files;
}

Fd OpenRegular(const std::string& path) {
  struct stat status = {};
  return Fd(stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)
                ? open(path.c_str(), O_RDONLY | O_CLOEXEC)
                : -1);
}

// As many bytes as there are; the rest are as they were.
bool ReadSome(int fd, uint64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got =
        pread(fd, to.data(), to.size(), static_cast<off_t>(offset));
    if (got <= 0) {
      return got == 0;
    }
    to = to.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

// Whether memory has what the region's file has, and zeros behind its end.
bool IsAsInFile(const GuestRegion& region, const GuestMemory& memory) {
  constexpr uint64_t kStepBytes = 64 * 1024;
  const Fd file = OpenRegular(region.name);
  std::vector<std::byte> in_memory(kStepBytes);
  for (uint64_t at = 0; at < region.size_bytes; at += kStepBytes) {
    std::vector<std::byte> in_file(
        std::min(kStepBytes, region.size_bytes - at));
    in_memory.resize(in_file.size());
    if (file.get() < 0 ||
        !memory.Read(region.addr + at, in_memory.data(), in_memory.size()) ||
        !ReadSome(file.get(), region.file_offset + at, in_file) ||
        in_memory != in_file) {
      return false;
    }
  }
  return true;
}

// A stretch of a region: bytes in the dump, then bytes that it leaves out:
// zeros, or those of a file.
struct Extent {
  uint64_t addr = 0;
  uint64_t file_bytes = 0;
  uint64_t memory_bytes = 0;
  uint32_t prot = 0;
};

void AddExtents(const GuestRegion& region, PageContent& content,
                std::vector<Extent>& extents) {
  extents.push_back({.addr = region.addr, .prot = region.prot});
  uint64_t done = 0;  // behind the last page with content
  while (done < region.size_bytes) {
    const uint64_t next = content.Next(region, done);
    extents.back().memory_bytes += next - done;
    if (next - done >= kCoreZeroRunBytes) {
      if (next == region.size_bytes) {
        return;
      }
      extents.push_back({.addr = region.addr + next, .prot = region.prot});
    }
    done = next;
    if (next < region.size_bytes) {
      extents.back().memory_bytes += kPageBytes;
      done += kPageBytes;
    }
    // A short run of zeros stays in the file: at the end, for gdb's sake.
    extents.back().file_bytes = extents.back().memory_bytes;
  }
}

// Which has a file's ELF header, and so its build-id.
void AddFirstPage(const GuestRegion& region, std::vector<Extent>& extents) {
  extents.push_back({.addr = region.addr,
                     .file_bytes = kPageBytes,
                     .memory_bytes = region.size_bytes,
                     .prot = region.prot});
}

Elf64_Ehdr FileHeader(size_t segments) {
  Elf64_Ehdr head = {};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_type = ET_CORE;
  head.e_machine = EM_X86_64;
  head.e_version = EV_CURRENT;
  head.e_phoff = sizeof(head);
  head.e_ehsize = sizeof(head);
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = static_cast<Elf64_Half>(segments);
  return head;
}

uint32_t SegmentFlags(uint32_t prot) {
  return ((prot & kProtRead) != 0 ? PF_R : 0u) |
         ((prot & kProtWrite) != 0 ? PF_W : 0u) |
         ((prot & kProtExec) != 0 ? PF_X : 0u);
}

void AppendSegment(RawFile& file, const Elf64_Phdr& segment) {
  file.Append(std::as_bytes(std::span(&segment, 1)));
}

void AppendSegments(RawFile& file, uint64_t notes_at, uint64_t notes_bytes,
                    uint64_t data_at, std::span<const Extent> extents) {
  Elf64_Phdr segment = {};
  segment.p_type = PT_NOTE;
  segment.p_offset = notes_at;
  segment.p_filesz = notes_bytes;
  segment.p_align = 4;
  AppendSegment(file, segment);
  for (const Extent& extent : extents) {
    segment = {};
    segment.p_type = PT_LOAD;
    segment.p_flags = SegmentFlags(extent.prot);
    segment.p_offset = data_at;
    segment.p_vaddr = extent.addr;
    segment.p_filesz = extent.file_bytes;
    segment.p_memsz = extent.memory_bytes;
    segment.p_align = kPageBytes;
    AppendSegment(file, segment);
    data_at += extent.file_bytes;
  }
}

}  // namespace

Status WriteCore(const std::string& path, const DumpedProcess& dump,
                 std::span<const GuestRegion> regions,
                 const GuestMemory& memory) {
  const Notes notes = MakeNotes(dump, regions);
  const auto with_code = FilesWithCode(regions);
  std::vector<Extent> extents;
  PageContent content(memory);
  for (const GuestRegion& region : regions) {
    const bool is_image = (region.prot & kProtWrite) == 0 &&
                          region.size_bytes > kPageBytes &&
                          with_code.contains(region.name);
    if (is_image && IsAsInFile(region, memory)) {
      AddFirstPage(region, extents);
    } else {
      AddExtents(region, content, extents);
    }
  }
  if (extents.size() + 1 >= PN_XNUM) {
    return Unsupported("{} memory regions are too many for a core dump",
                       extents.size());
  }
  const uint64_t notes_at =
      sizeof(Elf64_Ehdr) + (extents.size() + 1) * sizeof(Elf64_Phdr);
  const uint64_t data_at = RoundUpToPage(notes_at + notes.bytes().size());

  CLEW_ASSIGN_OR_RETURN(file, RawFile::Create(path));
  const Elf64_Ehdr head = FileHeader(extents.size() + 1);
  file.Append(std::as_bytes(std::span(&head, 1)));
  AppendSegments(file, notes_at, notes.bytes().size(), data_at, extents);
  file.Append(notes.bytes());
  file.AppendZeros(data_at - file.size_bytes());
  for (const Extent& extent : extents) {
    (void)memory.CopyTo(file, extent.addr, extent.file_bytes);
  }
  return file.Close();
}

}  // namespace clew::recorder
