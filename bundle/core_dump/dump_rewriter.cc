#include "bundle/core_dump/dump_rewriter.h"

#include <sys/procfs.h>

#include <algorithm>
#include <utility>

#include "common/inputs.h"
#include "common/x86/page.h"

namespace clew::bundle {
namespace {

// Linux, Documentation/arch/x86/xstate.rst and arch/x86/kernel/fpu/regset.c:
// the eight bytes at 464 of NT_X86_XSTATE are XCR0.
constexpr uint64_t kXcr0Offset = 464;
constexpr uint64_t kXcr0End = 472;

}  // namespace

Result<DumpRewriter> DumpRewriter::Open(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  DumpRewriter rewriter(std::move(file));
  if (Status parsed = rewriter.Parse(); !parsed) {
    parsed.error().message += "; it is left as it is";
    return std::unexpected(std::move(parsed).error());
  }
  rewriter.MarkStacks();
  return rewriter;
}

Status DumpRewriter::Parse() {
  CLEW_ASSIGN_OR_RETURN(layout, ReadDumpLayout(bytes(), file_.path()));
  layout_ = std::move(layout);
  if (layout_.header.e_phnum == PN_XNUM) {
    return Unsupported(
        "{}: it has {} segments or more, which cannot be redacted; drop the "
        "dump",
        file_.path(), PN_XNUM);
  }
  head_bytes_ = headers_end();
  uint64_t memory_at = UINT64_MAX;
  for (size_t i = 0; i < layout_.segments.size(); ++i) {
    const Elf64_Phdr& header = layout_.segments[i];
    if (header.p_type == PT_LOAD) {
      segments_.push_back({.header = header, .path = {}});
      header_index_.push_back(i);
      memory_at = header.p_filesz == 0 ? memory_at
                                       : std::min(memory_at, header.p_offset);
      continue;
    }
    head_bytes_ = std::max(head_bytes_, header.p_offset + header.p_filesz);
    if (header.p_type == PT_NOTE) {
      CLEW_RETURN_IF_ERROR(ForEachDumpNote(bytes(), header, file_.path(),
                                           [this](const DumpNote& note) {
                                             TakeNote(note);
                                             return Status();
                                           }));
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

uint64_t DumpRewriter::headers_end() const {
  return layout_.header.e_phoff + layout_.segments.size() * sizeof(Elf64_Phdr);
}

// Parts with the same bytes of the file could not be changed apart.
Status DumpRewriter::CheckOverlaps() const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges = {
      {0, sizeof layout_.header}, {layout_.header.e_phoff, headers_end()}};
  for (const Elf64_Phdr& header : layout_.segments) {
    const bool is_changed =
        header.p_type == PT_NOTE || header.p_type == PT_LOAD;
    if (is_changed && header.p_filesz > 0) {
      ranges.emplace_back(header.p_offset, header.p_offset + header.p_filesz);
    }
  }
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      return CorruptInput(
          "{}: offset {:#x}: two parts of it are the same bytes of the file",
          file_.path(), ranges[i].first);
    }
  }
  return {};
}

// A note that is damaged says less: what it does not name counts as anonymous,
// and where it has no stack pointer nothing is a stack.
void DumpRewriter::TakeNote(const DumpNote& note) {
  const uint64_t bytes = note.desc.size();
  if (note.type == NT_FPREGSET || note.type == NT_X86_XSTATE ||
      note.type == NT_PRXFPREG) {
    vector_registers_.push_back(
        {.offset = note.offset, .bytes = std::min(bytes, kXcr0Offset)});
    if (bytes > kXcr0End) {
      vector_registers_.push_back(
          {.offset = note.offset + kXcr0End, .bytes = bytes - kXcr0End});
    }
  }
  if (note.type == NT_AUXV && auxv_.empty()) {
    auxv_ = note.desc;
  } else if (note.type == NT_FILE) {
    (void)ReadDumpMappings(note, file_.path(), files_);
  } else if (note.type == NT_PRPSINFO && bytes >= sizeof(elf_prpsinfo)) {
    arguments_ = {.offset = note.offset + offsetof(elf_prpsinfo, pr_psargs),
                  .bytes = sizeof(elf_prpsinfo::pr_psargs)};
  } else if (note.type == NT_PRSTATUS) {
    if (const auto thread = ReadDumpThread(note, file_.path())) {
      stack_pointers_.push_back(thread->gpr[kRsp]);
    }
  }
}

void DumpRewriter::MarkStacks() {
  if (const auto random = AuxiliaryValue(auxv_, AT_RANDOM)) {
    stack_pointers_.push_back(*random);
  }
  for (RewrittenSegment& segment : segments_) {
    const Elf64_Phdr& header = segment.header;
    const auto file = std::ranges::find_if(files_, [&](const DumpMapping& f) {
      return header.p_vaddr - f.addr.as_int() < f.size_bytes;
    });
    segment.path = file == files_.end() ? "" : file->path;
    segment.holds_stack = std::ranges::any_of(stack_pointers_, [&](uint64_t p) {
      return p - header.p_vaddr < header.p_memsz;
    });
  }
}

bool DumpRewriter::Continues(const RewrittenSegment& before,
                             const RewrittenSegment& after) {
  const Elf64_Phdr& header = before.header;
  return header.p_vaddr + header.p_memsz == after.header.p_vaddr &&
         header.p_flags == after.header.p_flags && before.path.empty() &&
         after.path.empty();
}

std::span<const std::byte> DumpRewriter::BytesOf(
    const RewrittenSegment& segment) const {
  return bytes().subspan(segment.header.p_offset, segment.header.p_filesz);
}

Status DumpRewriter::Write(WritableFile& to, std::vector<Patch> patches) const {
  // Program headers and the ELF header are changed like other bytes of the
  // head.
  const uint64_t memory_at = RoundUpToPage(head_bytes_);
  uint64_t at = memory_at;
  std::vector<Patch> head;
  const auto put = [&head](uint64_t offset, const auto& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    head.push_back({.offset = offset, .bytes = {bytes.begin(), bytes.end()}});
  };
  Elf64_Ehdr ehdr = layout_.header;
  ehdr.e_shoff = 0;
  ehdr.e_shnum = 0;
  ehdr.e_shstrndx = SHN_UNDEF;
  put(0, ehdr);
  for (size_t i = 0; i < segments_.size(); ++i) {
    Elf64_Phdr header = segments_[i].header;
    header.p_filesz = segments_[i].dropped ? 0 : header.p_filesz;
    header.p_offset = at;
    at += RoundUpToPage(header.p_filesz);
    put(layout_.header.e_phoff + header_index_[i] * sizeof header, header);
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
    return to.Append(std::span(zeros).first(RoundUpToPage(written) - written));
  };
  CLEW_RETURN_IF_ERROR(pad(head_bytes_));
  for (const RewrittenSegment& segment : segments_) {
    if (!segment.dropped) {
      CLEW_RETURN_IF_ERROR(AppendPatched(to, BytesOf(segment),
                                         segment.header.p_offset, patches));
      CLEW_RETURN_IF_ERROR(pad(segment.header.p_filesz));
    }
  }
  return {};
}

}  // namespace clew::bundle
