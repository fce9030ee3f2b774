#ifndef CLEW_MACHINE_MEMORY_H_
#define CLEW_MACHINE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace clew::machine {

inline constexpr uint64_t kPageBytes = 4096;

// The address space of a traced process: sparse pages with protections.
//
// A copy is a snapshot: pages are shared until one side writes, so a checkpoint
// costs a few words a page. Not thread-safe, not even across copies.
//
// Undo: between SetMark and RollBack every store is logged with what it
// overwrote; RollBack restores contents exactly. Map, Unmap and Protect are
// undone too. The log is off until the first SetMark and after DropMarks.
class Memory {
 public:
  Memory();
  Memory(const Memory& other);
  Memory& operator=(const Memory& other);
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;
  ~Memory();

  // Page-granular; addr and size are rounded outwards. Map gives zeroed pages
  // in place of what was there. `prot` is kProtRead | kProtWrite | kProtExec.
  void Map(uint64_t addr, uint64_t size_bytes, uint32_t prot);
  void Unmap(uint64_t addr, uint64_t size_bytes);
  void Protect(uint64_t addr, uint64_t size_bytes, uint32_t prot);
  // mremap(2): moves pages with contents and protections.
  void Move(uint64_t from, uint64_t to, uint64_t size_bytes);
  // nullopt where nothing is mapped.
  std::optional<uint32_t> ProtectionAt(uint64_t addr) const;

  // By the CPU: false, with nothing changed, if a byte is not mapped with the
  // needed protection. Sizes up to a page; may cross pages.
  bool Load(uint64_t addr, std::span<std::byte> bytes) const;
  bool Store(uint64_t addr, std::span<const std::byte> bytes);
  // Integers, the fast path.
  template <class U>
  bool Load(uint64_t addr, U& value) const;
  template <class U>
  bool Store(uint64_t addr, U value);
  // Code bytes for the decoder; returns how many could be read (needs exec).
  size_t Fetch(uint64_t addr, std::span<std::byte> bytes) const;

  // By kernel and debugger: any size, protection ignored; false, with nothing
  // changed, if a byte is not mapped.
  bool Peek(uint64_t addr, std::span<std::byte> bytes) const;
  bool Poke(uint64_t addr, std::span<const std::byte> bytes);

  using Mark = size_t;
  Mark SetMark();            // REQUIRES: marks are rolled back in LIFO order
  void RollBack(Mark mark);  // to the state at SetMark; the mark stays valid
  void DropMarks();          // keeps the contents, forgets how to go back

  // A digest of all contents and where they are mapped, kept up to date by
  // every store once enabled (a few nanoseconds each); equal states have equal
  // digests however they were reached.
  void EnableDigest();
  uint64_t digest() const;

  // Grows with every change of mapping or of an executable page, so that a
  // cache of decoded code knows when to forget.
  uint64_t code_version() const;

  // Mapped ranges of equal protection, ascending.
  struct Range {
    uint64_t addr;
    uint64_t size_bytes;
    uint32_t prot;
  };
  std::vector<Range> Ranges() const;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_MEMORY_H_
