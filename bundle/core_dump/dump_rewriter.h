#ifndef CLEW_BUNDLE_CORE_DUMP_DUMP_REWRITER_H_
#define CLEW_BUNDLE_CORE_DUMP_DUMP_REWRITER_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bundle/core_dump/dump_layout.h"
#include "bundle/core_dump/dump_notes.h"
#include "common/os/file.h"
#include "common/os/patch.h"
#include "common/result.h"

namespace clew::bundle {

// A segment of a core dump.
struct RewrittenSegment {
  Elf64_Phdr header = {};
  std::string path;          // of the file mapped there; empty: none
  bool holds_stack = false;  // a thread's stack pointer, or AT_RANDOM
  bool dropped = false;      // to be left out when written
};

// An ELF core dump that is written again with less in it. Open fails with
// kUnsupported unless the dump is in the order header, program headers, notes,
// memory, as the kernel, gdb and our recorder write it, and with kCorruptInput
// if it breaks the format. Not thread-safe.
class DumpRewriter {
 public:
  [[nodiscard]] static Result<DumpRewriter> Open(const std::string& path);

  std::vector<RewrittenSegment>& segments() { return segments_; }
  const std::vector<RewrittenSegment>& segments() const { return segments_; }
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  // Returns whether both are parts of one anonymous mapping: our recorder
  // leaves out zero pages between such parts.
  static bool Continues(const RewrittenSegment& before,
                        const RewrittenSegment& after);
  // Returns the bytes of a segment, as far as it was dumped.
  std::span<const std::byte> BytesOf(const RewrittenSegment& segment) const;
  // The note NT_AUXV; empty if there is none.
  std::span<const std::byte> auxv() const { return auxv_; }
  struct Range {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  // Where NT_PRPSINFO has the arguments, pr_psargs; 0 bytes if it is not there.
  const Range& arguments() const { return arguments_; }
  // Where notes have vector registers, into which strings are loaded to be
  // copied and compared. The word that says which registers there are is left
  // out.
  const std::vector<Range>& vector_registers() const {
    return vector_registers_;
  }

  // Writes the dump to `to` without the bytes of dropped segments, whose
  // p_filesz is 0, and with `patches`, which lie in what is kept and do not
  // overlap.
  [[nodiscard]] Status Write(WritableFile& to,
                             std::vector<Patch> patches) const;

 private:
  explicit DumpRewriter(MappedFile file) : file_(std::move(file)) {}
  Status Parse();
  Status CheckOverlaps() const;
  void TakeNote(const DumpNote& note);
  void MarkStacks();
  uint64_t headers_end() const;

  MappedFile file_;
  DumpLayout layout_;
  uint64_t head_bytes_ = 0;                 // before the first segment's bytes
  std::vector<RewrittenSegment> segments_;  // PT_LOADs, in the file's order
  std::vector<size_t> header_index_;  // of each, among the program headers
  std::vector<DumpMapping> files_;
  std::vector<uint64_t> stack_pointers_;
  std::span<const std::byte> auxv_;
  Range arguments_;
  std::vector<Range> vector_registers_;
};

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_CORE_DUMP_DUMP_REWRITER_H_
