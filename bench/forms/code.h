#ifndef CLEW_BENCH_FORMS_CODE_H_
#define CLEW_BENCH_FORMS_CODE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/os/file.h"
#include "common/result.h"

namespace clew::bench {

// What one entry of .eh_frame describes: a function, or a part of it that lies
// elsewhere.
struct CodeRange {
  uint64_t addr = 0;  // as the file names it
  std::span<const std::byte> bytes;
};

// The code of an ELF file as its .eh_frame tells: in .text, there may be tables
// of constants between functions, as in libcrypto.
class CodeFile {
 public:
  // Opens a program or library of x86-64. kCorruptInput: it is none, or its
  // headers or entries break their format; kUnsupported: it has no .eh_frame,
  // or one with addresses as no compiler for x86-64 writes them.
  [[nodiscard]] static Result<CodeFile> Open(const std::string& path);

  // By address; none overlaps another. Their bytes live as long as this.
  const std::vector<CodeRange>& ranges() const { return ranges_; }
  // Of all sections of instructions, described or not.
  uint64_t executable_bytes() const { return executable_bytes_; }

 private:
  explicit CodeFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  std::vector<CodeRange> ranges_;
  uint64_t executable_bytes_ = 0;
};

}  // namespace clew::bench

#endif  // CLEW_BENCH_FORMS_CODE_H_
