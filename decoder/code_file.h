#ifndef CLEW_DECODER_CODE_FILE_H_
#define CLEW_DECODER_CODE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace clew::decoder {

// Why the code of a process cannot be read from this file, for people; null if
// it can. Wanted is an ELF file of 32 or 64 bits. One lacks code if it holds
// debug information alone, or is relocatable: a kernel module, which is not in
// memory as in its file.
const char* LacksCode(std::span<const std::byte> file);

bool Is32Bit(std::span<const std::byte> elf);

// What a loader puts into memory (PT_LOAD).
struct LoadSegment {
  uint64_t offset = 0;  // in the file
  uint64_t addr = 0;
  uint64_t file_bytes = 0;
  uint64_t memory_bytes = 0;
  bool is_code = false;
};

// Of an ELF file of 32 or 64 bits.
struct LoadSegments {
  bool movable = false;  // the file is not only for the addresses that it names
  std::vector<LoadSegment> all;
};
// Returns the loadable segments of `elf`; none if it is not such a file, or its
// program headers are cut off.
LoadSegments LoadSegmentsOf(std::span<const std::byte> elf);
// The first one of code that has bytes in the pages of the file's
// [file_offset, file_offset + size_bytes); null: none.
const LoadSegment* CodeIn(const LoadSegments& loads, uint64_t file_offset,
                          uint64_t size_bytes);

// Whether a loader makes code of any of the `size_bytes` of `elf` that are
// mapped from `file_offset` on: they are in an executable PT_LOAD.
bool HasCodeIn(std::span<const std::byte> elf, uint64_t file_offset,
               uint64_t size_bytes);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_CODE_FILE_H_
