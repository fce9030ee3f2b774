#include "decoder/code_file.h"

#include <elf.h>

#include <array>
#include <cstring>

#include "common/load_at.h"
#include "common/x86/page.h"

namespace clew::decoder {
namespace {

using Bytes = std::span<const std::byte>;

struct Elf32 {
  using Ehdr = Elf32_Ehdr;
  using Phdr = Elf32_Phdr;
  using Shdr = Elf32_Shdr;
};

struct Elf64 {
  using Ehdr = Elf64_Ehdr;
  using Phdr = Elf64_Phdr;
  using Shdr = Elf64_Shdr;
};

// ELFCLASSNONE: no ELF file.
unsigned char ClassOf(Bytes file) {
  std::array<unsigned char, EI_NIDENT> ident;
  return LoadAt(file, 0, ident) &&
                 std::memcmp(ident.data(), ELFMAG, SELFMAG) == 0
             ? ident[EI_CLASS]
             : static_cast<unsigned char>(ELFCLASSNONE);
}

// Debug information alone keeps the sections of code, as ones without bytes.
template <class Elf>
bool HasOnlyEmptyCodeSections(Bytes elf, const typename Elf::Ehdr& ehdr) {
  bool any = false;
  for (uint64_t i = 0; i < ehdr.e_shnum; ++i) {
    typename Elf::Shdr section;
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

template <class Elf>
const char* LacksCodeIn(Bytes elf) {
  typename Elf::Ehdr ehdr;
  if (!LoadAt(elf, 0, ehdr)) {
    return "it is cut off in its ELF header";
  }
  if (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN) {
    return "it is relocatable, as kernel modules are, and not in memory as in "
           "the file";
  }
  if (HasOnlyEmptyCodeSections<Elf>(elf, ehdr)) {
    return "it holds debug information alone, no code";
  }
  return nullptr;
}

template <class Elf>
LoadSegments LoadSegmentsIn(Bytes elf) {
  typename Elf::Ehdr ehdr;
  LoadSegments loads;
  if (!LoadAt(elf, 0, ehdr) || ehdr.e_phentsize != sizeof(typename Elf::Phdr)) {
    return loads;
  }
  loads.movable = ehdr.e_type != ET_EXEC;
  for (uint64_t i = 0; i < ehdr.e_phnum; ++i) {
    typename Elf::Phdr load;
    if (!LoadAt(elf, ehdr.e_phoff + i * sizeof load, load)) {
      return {};
    }
    if (load.p_type == PT_LOAD) {
      loads.all.push_back({.offset = load.p_offset,
                           .addr = load.p_vaddr,
                           .file_bytes = load.p_filesz,
                           .memory_bytes = load.p_memsz,
                           .is_code = (load.p_flags & PF_X) != 0});
    }
  }
  return loads;
}

}  // namespace

const char* LacksCode(Bytes file) {
  switch (ClassOf(file)) {
    case ELFCLASS32:
      return LacksCodeIn<Elf32>(file);
    case ELFCLASS64:
      return LacksCodeIn<Elf64>(file);
    default:
      return "it is no ELF file";
  }
}

bool Is32Bit(Bytes elf) { return ClassOf(elf) == ELFCLASS32; }

LoadSegments LoadSegmentsOf(Bytes elf) {
  switch (ClassOf(elf)) {
    case ELFCLASS32:
      return LoadSegmentsIn<Elf32>(elf);
    case ELFCLASS64:
      return LoadSegmentsIn<Elf64>(elf);
    default:
      return {};
  }
}

const LoadSegment* CodeIn(const LoadSegments& loads, uint64_t file_offset,
                          uint64_t size_bytes) {
  for (const LoadSegment& load : loads.all) {
    const uint64_t first = load.offset / kPageBytes * kPageBytes;
    const bool begins_inside =
        first >= file_offset && first - file_offset < size_bytes;
    const bool goes_on =
        file_offset >= first &&
        file_offset - first < load.offset - first + load.file_bytes;
    if (load.is_code && (begins_inside || goes_on)) {
      return &load;
    }
  }
  return nullptr;
}

bool HasCodeIn(Bytes elf, uint64_t file_offset, uint64_t size_bytes) {
  return CodeIn(LoadSegmentsOf(elf), file_offset, size_bytes) != nullptr;
}

}  // namespace clew::decoder
