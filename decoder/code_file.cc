#include "decoder/code_file.h"

#include <elf.h>

#include <array>
#include <cstring>

#include "common/load_at.h"

namespace clew::decoder {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t kPageBytes = 4096;

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
bool HasCodeInAt(Bytes elf, uint64_t file_offset) {
  typename Elf::Ehdr ehdr;
  if (!LoadAt(elf, 0, ehdr)) {
    return false;
  }
  for (uint64_t i = 0; i < ehdr.e_phnum; ++i) {
    typename Elf::Phdr load;
    if (!LoadAt(elf, ehdr.e_phoff + i * sizeof load, load)) {
      return false;
    }
    const uint64_t first = load.p_offset / kPageBytes * kPageBytes;
    if (load.p_type == PT_LOAD && (load.p_flags & PF_X) != 0 &&
        file_offset >= first &&
        file_offset - first < load.p_offset - first + load.p_filesz) {
      return true;
    }
  }
  return false;
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

bool HasCodeAt(Bytes elf, uint64_t file_offset) {
  switch (ClassOf(elf)) {
    case ELFCLASS32:
      return HasCodeInAt<Elf32>(elf, file_offset);
    case ELFCLASS64:
      return HasCodeInAt<Elf64>(elf, file_offset);
    default:
      return false;
  }
}

}  // namespace clew::decoder
