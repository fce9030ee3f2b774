#ifndef CLEW_RECORDER_QEMU_GENERATED_CODE_H_
#define CLEW_RECORDER_QEMU_GENERATED_CODE_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/tracer.h"

namespace clew::recorder {

// Code at `addr` that a reader has to be told of.
struct CodeChange {
  uint64_t addr = 0;
  uint64_t size_bytes = 0;
  // Other code was there before; false if none was known there.
  bool replaces = false;
  bool operator==(const CodeChange&) const = default;
};

// Tells code that a file holds from code that the program made, and remembers
// the latter as it was when it last was about to run. Code that is replaced, by
// the program or by a mapping, gives its pages a new version; versions count
// from 1. Memory: two pages for each page of such code. Not thread-safe.
class GeneratedCode {
 public:
  // The pages hold a file's code that the program cannot write.
  void MapFile(uint64_t addr, uint64_t size_bytes);
  // The same, as far as it is so.
  void Map(const ExecMapping& mapping);
  // The pages may be written, or hold something else. Returns whether there was
  // a file's code.
  bool Release(uint64_t addr, uint64_t size_bytes);
  // Of those that a call, which returned `result`, made so.
  bool ReleaseChangedBy(const SyscallCall& call, uint64_t result);

  struct Look {
    bool generated = false;           // no file holds it
    std::vector<CodeChange> changes;  // what was not known of it until now
    // The latest of its pages; 0: never anything but this was there.
    uint64_t version = 0;
  };
  // `bytes` at `addr` are about to run.
  Look LookAt(uint64_t addr, std::span<const std::byte> bytes);

  uint64_t latest_version() const { return latest_version_; }

 private:
  struct Page {
    uint64_t version = 0;
    std::array<std::byte, kPageBytes> bytes;
    std::bitset<kPageBytes> known;
  };
  // Disjoint stretches: begin to end.
  using Stretches = std::map<uint64_t, uint64_t>;

  static bool Touches(const Stretches& stretches, uint64_t begin, uint64_t end);
  static bool Holds(const Stretches& stretches, uint64_t begin, uint64_t end);
  static void Add(Stretches& stretches, uint64_t begin, uint64_t end);
  bool IsKnown(uint64_t begin, uint64_t end) const;
  void Replace(uint64_t begin, uint64_t end);
  uint64_t VersionOf(uint64_t begin, uint64_t end) const;
  std::vector<CodeChange> Compare(uint64_t addr,
                                  std::span<const std::byte> bytes) const;
  void Remember(uint64_t addr, std::span<const std::byte> bytes);

  Stretches files_;
  Stretches past_files_;
  std::unordered_map<uint64_t, Page> pages_;  // by number
  uint64_t latest_version_ = 0;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_GENERATED_CODE_H_
