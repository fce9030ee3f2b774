#include "decoder/host_images.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "common/byte_reader.h"
#include "common/file.h"

namespace clew::decoder {
namespace {

using Bytes = std::span<const std::byte>;

uint64_t Padded(uint64_t size) { return (size + 3) & ~uint64_t{3}; }

template <class T>
bool LoadAt(Bytes bytes, uint64_t offset, T& value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof value) {
    return false;
  }
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return true;
}

// The build-id among the notes, or empty.
Result<std::vector<std::byte>> FindBuildId(ByteReader notes) {
  while (!notes.at_end()) {
    CLEW_ASSIGN_OR_RETURN(name_size, notes.Read<uint32_t>("n_namesz"));
    CLEW_ASSIGN_OR_RETURN(desc_size, notes.Read<uint32_t>("n_descsz"));
    CLEW_ASSIGN_OR_RETURN(type, notes.Read<uint32_t>("n_type"));
    CLEW_ASSIGN_OR_RETURN(name, notes.ReadText(Padded(name_size), "name"));
    CLEW_ASSIGN_OR_RETURN(desc, notes.ReadBytes(desc_size, "description"));
    if (type == NT_GNU_BUILD_ID && name == "GNU") {
      return std::vector<std::byte>(desc.begin(), desc.end());
    }
    CLEW_RETURN_IF_ERROR(notes.Skip(
        std::min(Padded(desc_size) - desc_size, notes.remaining_bytes()),
        "padding"));
  }
  return std::vector<std::byte>();
}

// Debug information alone keeps the sections of code, as ones without bytes.
bool HasOnlyEmptyCodeSections(Bytes elf, const Elf64_Ehdr& ehdr) {
  bool any = false;
  for (uint64_t i = 0; i < ehdr.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!LoadAt(elf, ehdr.e_shoff + i * sizeof section, section)) {
      return false;
    }
    if ((section.sh_flags & SHF_EXECINSTR) != 0) {
      if (section.sh_type != SHT_NOBITS) {
        return false;
      }
      any = true;
    }
  }
  return any;
}

}  // namespace

std::vector<std::byte> BuildIdOf(Bytes elf) {
  Elf64_Ehdr ehdr;
  if (!LoadAt(elf, 0, ehdr) ||
      std::memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 ||
      ehdr.e_ident[EI_CLASS] != ELFCLASS64) {
    return {};
  }
  for (uint64_t i = 0; i < ehdr.e_phnum; ++i) {
    Elf64_Phdr phdr;
    if (!LoadAt(elf, ehdr.e_phoff + i * sizeof phdr, phdr)) {
      return {};
    }
    if (phdr.p_type != PT_NOTE || phdr.p_offset > elf.size() ||
        phdr.p_filesz > elf.size() - phdr.p_offset) {
      continue;
    }
    const auto found = FindBuildId(
        ByteReader(elf.subspan(phdr.p_offset, phdr.p_filesz), "notes"));
    if (found && !found->empty()) {
      return *found;
    }
  }
  return {};
}

const char* LacksCode(Bytes elf) {
  Elf64_Ehdr ehdr;
  if (!LoadAt(elf, 0, ehdr)) {
    return "it is no ELF file";
  }
  if (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN) {
    return "it is relocatable, as kernel modules are, and not in memory as in "
           "the file";
  }
  if (HasOnlyEmptyCodeSections(elf, ehdr)) {
    return "it holds debug information alone, no code";
  }
  return nullptr;
}

ImageResolver HostImages() {
  return [](const MmapRecord& mapping) -> std::string {
    if (mapping.build_id.empty() || !mapping.path.starts_with('/')) {
      return {};
    }
    const auto file = MappedFile::Open(mapping.path);
    const bool same = file && BuildIdOf(file->bytes()) == mapping.build_id &&
                      LacksCode(file->bytes()) == nullptr;
    return same ? mapping.path : std::string();
  };
}

}  // namespace clew::decoder
