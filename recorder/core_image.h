#ifndef CLEW_RECORDER_CORE_IMAGE_H_
#define CLEW_RECORDER_CORE_IMAGE_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/file.h"
#include "common/result.h"
#include "recorder/memory_view.h"

namespace clew::recorder {

// Bytes of a file that are to be others.
struct Patch {
  uint64_t offset = 0;
  std::vector<std::byte> bytes;
};

// A segment of a core dump.
struct CoreSegment {
  Elf64_Phdr header = {};
  std::string path;          // of the file mapped there; empty: none
  bool holds_stack = false;  // a thread's stack pointer, or AT_RANDOM
  bool dropped = false;      // to be left out when written
};

// An ELF core dump that is written again with less in it. The dump must be in
// the order header, program headers, notes, memory, as the kernel, gdb and our
// recorder write it; another one is kUnsupported, one that breaks the format
// kCorruptInput. Not thread-safe.
class CoreImage {
 public:
  [[nodiscard]] static Result<CoreImage> Open(const std::string& path);

  std::vector<CoreSegment>& segments() { return segments_; }
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  // Whether both are parts of one mapping of no file: our recorder leaves out
  // zero pages between such parts.
  static bool Continues(const CoreSegment& before, const CoreSegment& after);
  // Of a segment, as far as it was dumped.
  std::span<const std::byte> BytesOf(const CoreSegment& segment) const;
  // Of all segments.
  MemoryView Memory() const;
  // NT_AUXV; empty if there is none.
  std::span<const std::byte> auxv() const { return auxv_; }
  // Where NT_PRPSINFO has the arguments, pr_psargs; 0 bytes if it is not there.
  uint64_t arguments_offset() const { return arguments_offset_; }
  uint64_t arguments_bytes() const { return arguments_bytes_; }

  // Where notes have vector registers, into which strings are loaded to be
  // copied and compared. Without the word of them that says which registers
  // there are.
  struct Range {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  const std::vector<Range>& vector_registers() const {
    return vector_registers_;
  }

  // Writes the dump to `to` without the bytes of dropped segments, whose
  // p_filesz is 0, and with `patches`, which lie in what is kept and do not
  // overlap.
  [[nodiscard]] Status Write(WritableFile& to,
                             std::vector<Patch> patches) const;

 private:
  explicit CoreImage(MappedFile file) : file_(std::move(file)) {}
  Status Parse();
  Status CheckOverlaps() const;
  Status ParseNotes(const Elf64_Phdr& header);
  void TakeNote(uint32_t type, std::span<const std::byte> desc);
  void TakeFiles(std::span<const std::byte> desc);
  void MarkStacks();
  Status Corrupt(const char* what) const;

  struct FileRange {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::string path;
  };
  MappedFile file_;
  Elf64_Ehdr ehdr_ = {};
  uint64_t head_bytes_ = 0;            // before the first segment's bytes
  std::vector<CoreSegment> segments_;  // PT_LOADs, in the file's order
  std::vector<Elf64_Phdr> notes_;
  std::vector<size_t> header_index_;  // of each, among the program headers
  std::vector<FileRange> files_;
  std::vector<uint64_t> stack_pointers_;
  std::span<const std::byte> auxv_;
  uint64_t arguments_offset_ = 0;
  uint64_t arguments_bytes_ = 0;
  std::vector<Range> vector_registers_;
};

// Appends `bytes`, which begin at `offset` of a file, with those of `patches`
// that lie there. REQUIRES: patches are ordered and do not cross its ends.
[[nodiscard]] Status AppendPatched(WritableFile& to,
                                   std::span<const std::byte> bytes,
                                   uint64_t offset,
                                   std::span<const Patch> patches);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_CORE_IMAGE_H_
