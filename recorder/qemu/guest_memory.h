#ifndef CLEW_RECORDER_QEMU_GUEST_MEMORY_H_
#define CLEW_RECORDER_QEMU_GUEST_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "common/x86/page.h"
#include "recorder/qemu/raw_file.h"

namespace clew::recorder {

// qemu-x86_64 keeps the program's memory below, at its own addresses, and
// itself above, where the program has only what it asked for by address.
inline constexpr uint64_t kGuestEnd = 0x500000000000;

// What the program may do with the page at `addr`; nullopt where it has none.
using PageProtection = std::function<std::optional<uint32_t>(uint64_t addr)>;

// Reads and writes memory of the program that may not be there, or that the
// program may not touch: of this process, with QEMU around the program, or of
// another one, which is all the program's. Not thread-safe.
class GuestMemory {
 public:
  // Of a process that this thread traces (ptrace(2)).
  [[nodiscard]] static Result<GuestMemory> OpenOf(int32_t process);
  // Above kGuestEnd it is the program's where `high` has a page; nowhere
  // without.
  [[nodiscard]] static Result<GuestMemory> Open(PageProtection high = nullptr);
  GuestMemory(GuestMemory&& other) noexcept;
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;
  GuestMemory& operator=(GuestMemory&&) = delete;
  ~GuestMemory();

  // Returns the process, 0: this one.
  int32_t process() const { return process_; }
  // All of it or false. Reads what the program itself may not (PROT_NONE).
  bool Read(uint64_t addr, void* to, size_t count) const;
  template <class T>
  std::optional<T> Load(uint64_t addr) const {
    T value;
    if (!Read(addr, &value, sizeof(value))) {
      return std::nullopt;
    }
    return value;
  }
  // All of it or false; some of it may have been written then. Writes even
  // where the program may only read; false if the kernel does not allow that.
  bool Write(uint64_t addr, const void* from, size_t count) const;
  // False: every Write fails.
  bool can_write() const { return can_write_; }
  // Text up to a NUL, at most `max_bytes`; what is readable of it.
  std::string Text(uint64_t addr, size_t max_bytes) const;
  // Appends `count` bytes at `addr` to `file` in bounded steps; unreadable
  // pages as zeros. Returns how many bytes were unreadable.
  uint64_t CopyTo(RawFile& file, uint64_t addr, uint64_t count) const;

 private:
  GuestMemory(int fd, bool can_write, PageProtection high)
      : fd_(fd), can_write_(can_write), high_(std::move(high)) {}
  bool IsPrograms(uint64_t addr, uint64_t count) const;
  int fd_;
  bool can_write_;
  PageProtection high_;
  int32_t process_ = 0;
};

// A stretch of program memory with one protection and one origin.
struct GuestRegion {
  uint64_t addr = 0;
  uint64_t size_bytes = 0;
  uint32_t prot = 0;  // kProt... (common/inputs.h)
  uint64_t file_offset = 0;
  std::string name;  // file, "[stack]", "[heap]" or empty
  // Of ListRegionsOf alone: other processes may have it; it is private and was
  // zero when it was mapped.
  bool shared = false;
  bool was_zero = false;
  uint64_t shared_memory = 0;  // which (StartSegment); of ListRegionsOf alone
};

// The program's memory, by address: the kernel's list of mappings below `end`,
// with the protections that the program knows (QEMU shows its own to the
// kernel). `stack_addr` and `brk` name their regions. An `end` above kGuestEnd
// costs a look at each of QEMU's own pages.
[[nodiscard]] Result<std::vector<GuestRegion>> ListRegions(
    const PageProtection& protection, uint64_t stack_addr, uint64_t brk,
    uint64_t end = kGuestEnd);
// Likewise of another process, as the kernel protects it, without what the
// kernel alone writes there ([vvar]).
[[nodiscard]] Result<std::vector<GuestRegion>> ListRegionsOf(
    int32_t process, uint64_t stack_addr, uint64_t brk);

// Whether the mapping at `addr` is one that other processes may have, too; of
// `process`, 0: this one.
bool IsSharedMapping(uint64_t addr, int32_t process = 0);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_GUEST_MEMORY_H_
