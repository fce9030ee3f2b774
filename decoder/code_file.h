#ifndef CLEW_DECODER_CODE_FILE_H_
#define CLEW_DECODER_CODE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace clew::decoder {

// Why the code of a process cannot be read from this file, for people; null if
// it can. Wanted is an ELF file of 32 or 64 bits. One lacks code if it holds
// debug information alone, or is relocatable: a kernel module, which is not in
// memory as in its file.
const char* LacksCode(std::span<const std::byte> file);

// Whether a loader that maps the pages of `elf` from `file_offset` on makes
// code of them: it is in an executable PT_LOAD.
bool HasCodeAt(std::span<const std::byte> elf, uint64_t file_offset);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_CODE_FILE_H_
