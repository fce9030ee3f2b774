#ifndef CLEW_RECORDER_QEMU_PROGRAM_KIND_H_
#define CLEW_RECORDER_QEMU_PROGRAM_KIND_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace clew::recorder {

enum class ProgramKind : uint8_t {
  kNoElf,
  kOtherElf,  // of another machine, or of 32 bits
  kX86_64,
};

// Returns what a file that begins with `head` is. What `head` lacks of an ELF
// header counts as zeros.
ProgramKind ProgramKindOf(std::span<const std::byte> head);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PROGRAM_KIND_H_
