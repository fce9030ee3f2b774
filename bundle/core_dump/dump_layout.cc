#include "bundle/core_dump/dump_layout.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/byte_reader.h"
#include "common/round_up.h"

namespace clew::bundle {
namespace {

// The bytes of one dump, for reading structures out of them.
class Source {
 public:
  Source(std::span<const std::byte> bytes, const std::string& name)
      : bytes_(bytes), name_(name) {}

  Status CheckPart(uint64_t offset, uint64_t size,
                   std::string_view what) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset
               ? Status()
               : CorruptInput(
                     "{}: {} is {} bytes at offset {:#x}, the file has {}",
                     name_, what, size, offset, bytes_.size());
  }

  template <class T>
  Result<T> Read(uint64_t offset, std::string_view what) const {
    CLEW_RETURN_IF_ERROR(CheckPart(offset, sizeof(T), what));
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& name_;
};

Status CheckHeader(const Elf64_Ehdr& header, const std::string& name) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return CorruptInput("{}: offset 0x0: no 64-bit little-endian ELF file",
                        name);
  }
  if (header.e_type != ET_CORE || header.e_machine != EM_X86_64) {
    return CorruptInput(
        "{}: offset 0x10: e_type is {}, e_machine {}; wanted {} (core), {} "
        "(x86-64)",
        name, header.e_type, header.e_machine, ET_CORE, EM_X86_64);
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr)) {
    return CorruptInput("{}: offset 0x36: e_phentsize is {}, wanted {}", name,
                        header.e_phentsize, sizeof(Elf64_Phdr));
  }
  return {};
}

// elf(5), e_phnum: as many as its bits hold and more are told by a section.
Result<uint64_t> CountSegments(const Source& source, const Elf64_Ehdr& header) {
  if (header.e_phnum != PN_XNUM) {
    return header.e_phnum;
  }
  CLEW_ASSIGN_OR_RETURN(
      section, source.Read<Elf64_Shdr>(header.e_shoff, "first section header"));
  return section.sh_info;
}

Status CheckSegment(const Source& source, const Elf64_Phdr& segment,
                    uint64_t header_at, const std::string& name) {
  if (segment.p_type == PT_LOAD &&
      (segment.p_vaddr + segment.p_memsz < segment.p_vaddr ||
       segment.p_filesz > segment.p_memsz)) {
    return CorruptInput(
        "{}: offset {:#x}: segment at {:#x} has p_memsz {:#x}, p_filesz {:#x}",
        name, header_at, segment.p_vaddr, segment.p_memsz, segment.p_filesz);
  }
  return source.CheckPart(
      segment.p_offset, segment.p_filesz,
      segment.p_type == PT_NOTE
          ? "notes"
          : fmt::format("segment at {:#x}", segment.p_vaddr));
}

}  // namespace

Result<DumpLayout> ReadDumpLayout(std::span<const std::byte> bytes,
                                  const std::string& name) {
  const Source source(bytes, name);
  CLEW_ASSIGN_OR_RETURN(header, source.Read<Elf64_Ehdr>(0, "ELF header"));
  CLEW_RETURN_IF_ERROR(CheckHeader(header, name));
  CLEW_ASSIGN_OR_RETURN(count, CountSegments(source, header));
  CLEW_RETURN_IF_ERROR(source.CheckPart(
      header.e_phoff, count * sizeof(Elf64_Phdr), "program headers"));
  DumpLayout layout{.header = header, .segments = {}};
  layout.segments.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    CLEW_ASSIGN_OR_RETURN(segment,
                          source.Read<Elf64_Phdr>(at, "program header"));
    CLEW_RETURN_IF_ERROR(CheckSegment(source, segment, at, name));
    layout.segments.push_back(segment);
  }
  return layout;
}

Status ForEachDumpNote(std::span<const std::byte> bytes,
                       const Elf64_Phdr& segment, const std::string& name,
                       const std::function<Status(const DumpNote&)>& take) {
  ByteReader reader(bytes.subspan(segment.p_offset, segment.p_filesz), name,
                    segment.p_offset);
  while (!reader.at_end()) {
    CLEW_ASSIGN_OR_RETURN(name_size, reader.Read<uint32_t>("n_namesz"));
    CLEW_ASSIGN_OR_RETURN(desc_size, reader.Read<uint32_t>("n_descsz"));
    CLEW_ASSIGN_OR_RETURN(type, reader.Read<uint32_t>("n_type"));
    CLEW_RETURN_IF_ERROR(reader.Skip(PaddedNoteBytes(name_size), "note name"));
    const uint64_t at = reader.file_offset();
    CLEW_ASSIGN_OR_RETURN(desc,
                          reader.ReadBytes(desc_size, "note description"));
    CLEW_RETURN_IF_ERROR(
        reader.Skip(std::min(PaddedNoteBytes(desc_size) - desc_size,
                             reader.remaining_bytes()),
                    "note padding"));
    CLEW_RETURN_IF_ERROR(take({.type = type, .offset = at, .desc = desc}));
  }
  return {};
}

}  // namespace clew::bundle
