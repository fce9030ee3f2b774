#include "recorder/images/vdso.h"

#include <elf.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdint>

namespace clew::recorder {

// The kernel's own ELF file in our own memory, so its headers are trusted.
std::span<const std::byte> OwnVdso() {
  const auto begin = getauxval(AT_SYSINFO_EHDR);
  if (begin == 0) {
    return {};
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(begin);
  const auto* const head = reinterpret_cast<const Elf64_Ehdr*>(bytes);
  uint64_t end = head->e_shoff + uint64_t{head->e_shnum} * sizeof(Elf64_Shdr);
  const auto* const segments =
      reinterpret_cast<const Elf64_Phdr*>(bytes + head->e_phoff);
  for (const Elf64_Phdr& segment : std::span(segments, head->e_phnum)) {
    end = std::max(end, segment.p_offset + segment.p_filesz);
  }
  return {bytes, end};
}

}  // namespace clew::recorder
