#ifndef CLEW_RECORDER_REDACTION_MEMORY_VIEW_H_
#define CLEW_RECORDER_REDACTION_MEMORY_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/x86/page.h"

namespace clew::recorder {

// A stretch of recorded memory, borrowed.
struct MemoryPart {
  uint64_t addr = 0;
  std::span<const std::byte> bytes;
  bool writable = false;
};

// Recorded memory by address. Parts must not overlap.
class MemoryView {
 public:
  explicit MemoryView(std::vector<MemoryPart> parts);
  const std::vector<MemoryPart>& parts() const { return parts_; }
  bool Read(uint64_t addr, std::span<std::byte> out) const;
  std::optional<uint64_t> ReadWord(uint64_t addr) const;
  // Without the zero at its end; nullopt if there is none within `bytes_max`.
  std::optional<std::string> ReadString(uint64_t addr, size_t bytes_max) const;

 private:
  const MemoryPart* Find(uint64_t addr) const;
  std::vector<MemoryPart> parts_;  // by address
};

// A string that the kernel put on a new process's stack.
struct StackString {
  uint64_t addr = 0;
  std::string text;
};

// Arguments and environment of a process as its stack had them at the start.
struct StackStrings {
  // Linux: binfmts.h, MAX_ARG_STRLEN; and more strings than ARG_MAX allows.
  static constexpr size_t kStringBytesMax = 32 * kPageBytes;
  static constexpr size_t kStringsMax = 1 << 20;

  std::vector<StackString> arguments;
  std::vector<StackString> environment;  // "NAME=value"
};

// From the stack pointer of the first instruction, where argc is. kUnsupported:
// no such list is there.
// Source: System V ABI, AMD64 supplement, "Initial Stack and Register State".
[[nodiscard]] Result<StackStrings> ReadStackStrings(const MemoryView& memory,
                                                    uint64_t rsp);
// Where `auxv`, the auxiliary vector that a core dump notes, is in writable
// memory: the environment ends before it. kUnsupported: it is not there.
[[nodiscard]] Result<StackStrings> FindStackStrings(
    const MemoryView& memory, std::span<const std::byte> auxv);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_REDACTION_MEMORY_VIEW_H_
