#ifndef CLEW_BUNDLE_CORE_DUMP_DUMP_LAYOUT_H_
#define CLEW_BUNDLE_CORE_DUMP_DUMP_LAYOUT_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

namespace clew::bundle {

// What is where in an x86-64 ELF core dump: the layer below CoreDump, which
// reads one, and DumpRewriter, which writes one again. Source: elf(5); core(5).
struct DumpLayout {
  Elf64_Ehdr header = {};
  // In the file's order. The bytes of each lie in the file; memory (PT_LOAD)
  // does not go beyond the last address and has not more bytes than it is long.
  std::vector<Elf64_Phdr> segments;
};

// A note (PT_NOTE). Nothing is known of its content.
struct DumpNote {
  uint32_t type = 0;    // NT_...
  uint64_t offset = 0;  // of `desc` in the file
  std::span<const std::byte> desc;
};

// Returns the layout of the dump in `bytes`; `name` is for messages. Fails with
// kCorruptInput if that is none of x86-64 or leads out of the file.
[[nodiscard]] Result<DumpLayout> ReadDumpLayout(
    std::span<const std::byte> bytes, const std::string& name);

// Calls `take` with each note of `segment`, a PT_NOTE of the layout, until it
// fails. Fails with kCorruptInput if a note leads out of the segment.
[[nodiscard]] Status ForEachDumpNote(
    std::span<const std::byte> bytes, const Elf64_Phdr& segment,
    const std::string& name,
    const std::function<Status(const DumpNote&)>& take);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_CORE_DUMP_DUMP_LAYOUT_H_
