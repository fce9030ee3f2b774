#ifndef CLEW_RECORDER_QEMU_CODE_LIST_H_
#define CLEW_RECORDER_QEMU_CODE_LIST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/result.h"
#include "common/units.h"
#include "recorder/qemu/raw_file.h"

namespace clew::recorder {

// An instruction of the program's, and one place where it is.
struct CodeInsn {
  TraceeAddr ip;
  std::vector<std::byte> bytes;
};

// Collects the instructions that a run came to, each sequence of bytes once, in
// a file with a line for each. Not thread-safe.
class CodeListWriter {
 public:
  explicit CodeListWriter(RawFile file) : file_(std::move(file)) {}
  // `bytes` is one whole instruction, of 15 bytes at most.
  void Add(uint64_t ip, std::span<const uint8_t> bytes);
  RawFile& file() { return file_; }

 private:
  // The bytes, and how many.
  using Insn = std::array<uint64_t, 2>;
  struct Hash {
    size_t operator()(const Insn& insn) const {
      constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
      const uint64_t mixed = (insn[0] * kOdd ^ insn[1]) * kOdd;
      return mixed ^ mixed >> 32;
    }
  };

  RawFile file_;
  std::unordered_set<Insn, Hash> seen_;
};

// What a CodeListWriter has written, and closed. kCorruptInput names the line.
[[nodiscard]] Result<std::vector<CodeInsn>> ReadCodeList(
    const std::string& path);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CODE_LIST_H_
