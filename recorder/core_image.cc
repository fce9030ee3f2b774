#include "recorder/core_image.h"

#include <sys/procfs.h>
#include <sys/user.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/byte_reader.h"
#include "common/check.h"
#include "common/x86/page.h"

namespace clew::recorder {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;

// Linux, Documentation/arch/x86/xstate.rst and arch/x86/kernel/fpu/regset.c:
// the eight bytes at 464 of NT_X86_XSTATE are XCR0.
constexpr uint64_t kXcr0Offset = 464;
constexpr uint64_t kXcr0End = 472;

uint64_t RoundUp(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Status AppendPatched(WritableFile& to, std::span<const std::byte> bytes,
                     uint64_t offset, std::span<const Patch> patches) {
  const uint64_t end = offset + bytes.size();
  uint64_t at = offset;
  const auto plain = [&](uint64_t until) -> Status {
    while (at < until) {
      const auto count = std::min<uint64_t>(until - at, kWriteBytes);
      CLEW_RETURN_IF_ERROR(to.Append(bytes.subspan(at - offset, count)));
      at += count;
    }
    return {};
  };
  const auto first =
      std::ranges::lower_bound(patches, offset, {}, &Patch::offset);
  for (const Patch& patch : std::span(first, patches.end())) {
    if (patch.offset >= end) {
      break;
    }
    CLEW_CHECK(patch.offset >= at && patch.bytes.size() <= end - patch.offset,
               "patch at {:#x} overlaps", patch.offset);
    CLEW_RETURN_IF_ERROR(plain(patch.offset));
    CLEW_RETURN_IF_ERROR(to.Append(patch.bytes));
    at += patch.bytes.size();
  }
  return plain(end);
}

Result<CoreImage> CoreImage::Open(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  CoreImage image(std::move(file));
  CLEW_RETURN_IF_ERROR(image.Parse());
  image.MarkStacks();
  return image;
}

Status CoreImage::Corrupt(const char* what) const {
  return CorruptInput("{}: {}; it is left as it is", file_.path(), what);
}

Status CoreImage::Parse() {
  const auto all = bytes();
  if (all.size() < sizeof ehdr_) {
    return Corrupt("it is too short for an ELF header");
  }
  std::memcpy(&ehdr_, all.data(), sizeof ehdr_);
  if (std::memcmp(ehdr_.e_ident, ELFMAG, SELFMAG) != 0 ||
      ehdr_.e_ident[EI_CLASS] != ELFCLASS64 || ehdr_.e_type != ET_CORE ||
      ehdr_.e_phentsize != sizeof(Elf64_Phdr)) {
    return Corrupt("it is no 64-bit ELF core dump");
  }
  if (ehdr_.e_phnum == PN_XNUM) {
    return Unsupported(
        "{}: it has 65535 segments or more, which cannot be "
        "redacted; drop the dump",
        file_.path());
  }
  const uint64_t table = uint64_t{ehdr_.e_phnum} * sizeof(Elf64_Phdr);
  if (ehdr_.e_phoff > all.size() || table > all.size() - ehdr_.e_phoff) {
    return Corrupt("its program headers lie outside the file");
  }
  head_bytes_ = ehdr_.e_phoff + table;
  uint64_t memory_at = UINT64_MAX;
  for (size_t i = 0; i < ehdr_.e_phnum; ++i) {
    Elf64_Phdr header;
    std::memcpy(&header, all.data() + ehdr_.e_phoff + i * sizeof header,
                sizeof header);
    if (header.p_offset > all.size() ||
        header.p_filesz > all.size() - header.p_offset ||
        header.p_vaddr + header.p_filesz < header.p_vaddr) {
      return Corrupt("a segment of it lies outside the file");
    }
    if (header.p_type == PT_LOAD) {
      segments_.push_back({.header = header, .path = {}});
      header_index_.push_back(i);
      memory_at = header.p_filesz == 0 ? memory_at
                                       : std::min(memory_at, header.p_offset);
      continue;
    }
    head_bytes_ = std::max(head_bytes_, header.p_offset + header.p_filesz);
    if (header.p_type == PT_NOTE) {
      notes_.push_back(header);
      CLEW_RETURN_IF_ERROR(ParseNotes(header));
    }
  }
  CLEW_RETURN_IF_ERROR(CheckOverlaps());
  // gdb writes sections as well; they name what segments have, and are left
  // out.
  if (head_bytes_ > memory_at) {
    return Unsupported(
        "{}: its memory lies before its notes, which cannot be "
        "redacted; drop the dump",
        file_.path());
  }
  return {};
}

// Parts with the same bytes of the file could not be changed apart.
Status CoreImage::CheckOverlaps() const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges = {
      {0, sizeof ehdr_},
      {ehdr_.e_phoff,
       ehdr_.e_phoff + uint64_t{ehdr_.e_phnum} * sizeof(Elf64_Phdr)}};
  for (const Elf64_Phdr& notes : notes_) {
    ranges.emplace_back(notes.p_offset, notes.p_offset + notes.p_filesz);
  }
  for (const CoreSegment& segment : segments_) {
    const Elf64_Phdr& header = segment.header;
    if (header.p_filesz > 0) {
      ranges.emplace_back(header.p_offset, header.p_offset + header.p_filesz);
    }
  }
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      return Corrupt("two parts of it are the same bytes of the file");
    }
  }
  return {};
}

Status CoreImage::ParseNotes(const Elf64_Phdr& header) {
  ByteReader reader(bytes().subspan(header.p_offset, header.p_filesz),
                    file_.path(), header.p_offset);
  while (!reader.at_end()) {
    CLEW_ASSIGN_OR_RETURN(name_size, reader.Read<uint32_t>("n_namesz"));
    CLEW_ASSIGN_OR_RETURN(desc_size, reader.Read<uint32_t>("n_descsz"));
    CLEW_ASSIGN_OR_RETURN(type, reader.Read<uint32_t>("n_type"));
    CLEW_RETURN_IF_ERROR(
        reader.Skip(RoundUp(uint64_t{name_size}, 4), "note name"));
    CLEW_ASSIGN_OR_RETURN(desc,
                          reader.ReadBytes(desc_size, "note description"));
    TakeNote(type, desc);
    CLEW_RETURN_IF_ERROR(
        reader.Skip(std::min(RoundUp(uint64_t{desc_size}, 4) - desc_size,
                             reader.remaining_bytes()),
                    "note padding"));
  }
  return {};
}

void CoreImage::TakeNote(uint32_t type, std::span<const std::byte> desc) {
  const auto at = static_cast<uint64_t>(desc.data() - bytes().data());
  if (type == NT_FPREGSET || type == NT_X86_XSTATE || type == NT_PRXFPREG) {
    const uint64_t first = std::min<uint64_t>(desc.size(), kXcr0Offset);
    vector_registers_.push_back({.offset = at, .bytes = first});
    if (desc.size() > kXcr0End) {
      vector_registers_.push_back(
          {.offset = at + kXcr0End, .bytes = desc.size() - kXcr0End});
    }
  }
  if (type == NT_AUXV && auxv_.empty()) {
    auxv_ = desc;
  } else if (type == NT_FILE) {
    TakeFiles(desc);
  } else if (type == NT_PRPSINFO && desc.size() >= sizeof(elf_prpsinfo)) {
    arguments_offset_ = at + offsetof(elf_prpsinfo, pr_psargs);
    arguments_bytes_ = sizeof(elf_prpsinfo::pr_psargs);
  } else if (type == NT_PRSTATUS && desc.size() >= sizeof(elf_prstatus)) {
    user_regs_struct regs;
    static_assert(sizeof regs == sizeof(elf_prstatus::pr_reg));
    std::memcpy(&regs, desc.data() + offsetof(elf_prstatus, pr_reg),
                sizeof regs);
    stack_pointers_.push_back(regs.rsp);
  }
}

// A list that is damaged names fewer files; what is not named counts as
// anonymous.
void CoreImage::TakeFiles(std::span<const std::byte> desc) {
  ByteReader reader(desc, file_.path());
  const auto count = reader.Read<uint64_t>("count");
  const auto page = reader.Read<uint64_t>("page size");
  if (!count || !page || *count > desc.size() / 24) {
    return;
  }
  std::vector<FileRange> ranges;
  for (uint64_t i = 0; i < *count; ++i) {
    const auto begin = reader.Read<uint64_t>("start");
    const auto end = reader.Read<uint64_t>("end");
    const auto offset = reader.Read<uint64_t>("file_ofs");
    if (!begin || !end || !offset) {
      return;
    }
    ranges.push_back({.begin = *begin, .end = *end, .path = {}});
  }
  std::string_view names(
      reinterpret_cast<const char*>(desc.data()) + reader.offset(),
      reader.remaining_bytes());
  for (FileRange& range : ranges) {
    const size_t end = names.find('\0');
    if (end == std::string_view::npos) {
      return;
    }
    range.path = names.substr(0, end);
    names.remove_prefix(end + 1);
    files_.push_back(std::move(range));
  }
}

void CoreImage::MarkStacks() {
  for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= auxv_.size();
       at += sizeof(Elf64_auxv_t)) {
    Elf64_auxv_t entry;
    std::memcpy(&entry, auxv_.data() + at, sizeof entry);
    if (entry.a_type == AT_RANDOM) {
      stack_pointers_.push_back(entry.a_un.a_val);
    }
  }
  for (CoreSegment& segment : segments_) {
    const Elf64_Phdr& header = segment.header;
    const auto file = std::ranges::find_if(files_, [&](const FileRange& f) {
      return header.p_vaddr >= f.begin && header.p_vaddr < f.end;
    });
    segment.path = file == files_.end() ? "" : file->path;
    segment.holds_stack = std::ranges::any_of(stack_pointers_, [&](uint64_t p) {
      return p - header.p_vaddr < header.p_memsz;
    });
  }
}

bool CoreImage::Continues(const CoreSegment& before, const CoreSegment& after) {
  const Elf64_Phdr& header = before.header;
  return header.p_vaddr + header.p_memsz == after.header.p_vaddr &&
         header.p_flags == after.header.p_flags && before.path.empty() &&
         after.path.empty();
}

std::span<const std::byte> CoreImage::BytesOf(
    const CoreSegment& segment) const {
  return bytes().subspan(segment.header.p_offset, segment.header.p_filesz);
}

MemoryView CoreImage::Memory() const {
  std::vector<MemoryPart> parts;
  for (const CoreSegment& segment : segments_) {
    parts.push_back({.addr = segment.header.p_vaddr,
                     .bytes = BytesOf(segment),
                     .writable = (segment.header.p_flags & PF_W) != 0});
  }
  return MemoryView(std::move(parts));
}

Status CoreImage::Write(WritableFile& to, std::vector<Patch> patches) const {
  // Program headers and the ELF header are changed like other bytes of the
  // head.
  const uint64_t memory_at = RoundUp(head_bytes_, kPageBytes);
  uint64_t at = memory_at;
  std::vector<Patch> head;
  const auto put = [&head](uint64_t offset, const auto& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    head.push_back({.offset = offset, .bytes = {bytes.begin(), bytes.end()}});
  };
  Elf64_Ehdr ehdr = ehdr_;
  ehdr.e_shoff = 0;
  ehdr.e_shnum = 0;
  ehdr.e_shstrndx = SHN_UNDEF;
  put(0, ehdr);
  for (size_t i = 0; i < segments_.size(); ++i) {
    Elf64_Phdr header = segments_[i].header;
    header.p_filesz = segments_[i].dropped ? 0 : header.p_filesz;
    header.p_offset = at;
    at += RoundUp(header.p_filesz, kPageBytes);
    put(ehdr_.e_phoff + header_index_[i] * sizeof header, header);
  }
  for (Patch& patch : patches) {
    if (patch.offset < head_bytes_) {
      head.push_back(patch);
    }
  }
  std::ranges::sort(head, {}, &Patch::offset);
  std::ranges::sort(patches, {}, &Patch::offset);
  CLEW_RETURN_IF_ERROR(AppendPatched(to, bytes().first(head_bytes_), 0, head));
  const std::vector<std::byte> zeros(kPageBytes);
  const auto pad = [&](uint64_t written) {
    return to.Append(
        std::span(zeros).first(RoundUp(written, kPageBytes) - written));
  };
  CLEW_RETURN_IF_ERROR(pad(head_bytes_));
  for (const CoreSegment& segment : segments_) {
    if (!segment.dropped) {
      CLEW_RETURN_IF_ERROR(AppendPatched(to, BytesOf(segment),
                                         segment.header.p_offset, patches));
      CLEW_RETURN_IF_ERROR(pad(segment.header.p_filesz));
    }
  }
  return {};
}

}  // namespace clew::recorder
