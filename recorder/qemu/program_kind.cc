#include "recorder/qemu/program_kind.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace clew::recorder {

ProgramKind ProgramKindOf(std::span<const std::byte> head) {
  Elf64_Ehdr header = {};
  std::ranges::copy(head.first(std::min(head.size(), sizeof(header))),
                    std::as_writable_bytes(std::span(&header, 1)).begin());
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return ProgramKind::kNoElf;
  }
  const bool is_x86_64 = head.size() >= sizeof(header) &&
                         header.e_ident[EI_CLASS] == ELFCLASS64 &&
                         header.e_machine == EM_X86_64;
  return is_x86_64 ? ProgramKind::kX86_64 : ProgramKind::kOtherElf;
}

}  // namespace clew::recorder
