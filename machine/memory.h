#ifndef CLEW_MACHINE_MEMORY_H_
#define CLEW_MACHINE_MEMORY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "machine/page_table.h"
#include "machine/shared_mappings.h"

namespace clew::machine {

// The address space of a traced process: sparse pages with protections.
//
// A copy is a snapshot: pages are shared until one side writes, so a checkpoint
// costs a few words a page. Not thread-safe, not even across copies.
//
// Memory that is mapped shared at several places is held at each of them; what
// is stored at one place is stored at its mirrors (machine/shared_mappings.h),
// too.
//
// Undo: between SetMark and RollBack every store is logged with what it
// overwrote; RollBack restores contents exactly. Map, Unmap and Protect are
// undone too. The log is off until the first SetMark and after DropMarks. A
// copy starts with the log off; an assignment drops the marks.
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
  // REQUIRES: addr + size_bytes does not wrap (Map, Move).
  void Map(uint64_t addr, uint64_t size_bytes, uint32_t prot);
  // Does the same for pages of shared memory, which have the numbers from
  // `number` on (machine/shared_mappings.h). Those that are mapped elsewhere
  // already have the contents that they have there.
  void MapShared(uint64_t addr, uint64_t size_bytes, uint32_t prot,
                 uint64_t number);
  void Unmap(uint64_t addr, uint64_t size_bytes);
  void Protect(uint64_t addr, uint64_t size_bytes, uint32_t prot);
  // Lets what is mapped read zero, except where it is shared: that stays what
  // it is (madvise(2), MADV_DONTNEED).
  void Clear(uint64_t addr, uint64_t size_bytes);
  // mremap(2): moves pages with contents and protections. The ranges may not
  // overlap; what was at `to` is replaced, holes stay holes.
  void Move(uint64_t from, uint64_t to, uint64_t size_bytes);
  // Returns the protection of the page; nullopt if nothing is mapped there.
  std::optional<uint32_t> ProtectionAt(uint64_t addr) const;
  // Returns the number of a page of shared memory; nullopt if it is private.
  std::optional<uint64_t> SharedNumberAt(uint64_t addr) const {
    return shared_ == nullptr ? std::nullopt
                              : shared_->NumberOf(addr >> kPageShift);
  }
  // Returns where a page of shared memory is mapped; nullopt if it is nowhere.
  std::optional<uint64_t> AddrOfShared(uint64_t number) const;
  // Returns the bytes from `addr` up to the end of the shared mapping that it
  // is in; 0 if it is private.
  uint64_t SharedBytesAt(uint64_t addr) const;
  // Calls visit(at, offset, size_bytes) for each other place `at` where the
  // bytes from `addr + offset` on are mapped, too; each in one page.
  template <class Visit>
  void ForEachMirror(uint64_t addr, uint64_t size_bytes, Visit visit) const {
    if (has_mirrors_) [[unlikely]] {
      VisitMirrors(addr, size_bytes, visit);
    }
  }
  // Returns whether some of the bytes are mapped elsewhere, too.
  bool HasMirror(uint64_t addr, uint64_t size_bytes) const {
    bool has = false;
    ForEachMirror(addr, size_bytes,
                  [&has](uint64_t, uint64_t, uint64_t) { has = true; });
    return has;
  }

  // Accesses of the CPU. These return false, with nothing changed, if a byte is
  // not mapped with the needed protection. Sizes up to a page; may cross pages.
  bool Load(uint64_t addr, std::span<std::byte> bytes) const;
  bool Store(uint64_t addr, std::span<const std::byte> bytes);
  // Integers, the fast path.
  template <class U>
  bool Load(uint64_t addr, U& value) const {
    const TlbEntry& entry = read_tlb_[TlbIndex(addr)];
    if (Hit(entry, addr, sizeof(U))) [[likely]] {
      std::memcpy(&value, entry.host + addr % kPageBytes, sizeof(U));
      return true;
    }
    return Load(addr, std::as_writable_bytes(std::span(&value, 1)));
  }
  template <class U>
  bool Store(uint64_t addr, U value) {
    const TlbEntry& entry = write_tlb_[TlbIndex(addr)];
    if (Hit(entry, addr, sizeof(U)) && !tracking_) [[likely]] {
      std::memcpy(entry.host + addr % kPageBytes, &value, sizeof(U));
      return true;
    }
    return Store(addr, std::as_bytes(std::span(&value, 1)));
  }
  // These return whether all bytes may be read or written.
  bool CanLoad(uint64_t addr, uint64_t size_bytes) const;
  bool CanStore(uint64_t addr, uint64_t size_bytes) const {
    return Hit(write_tlb_[TlbIndex(addr)], addr, size_bytes) ||
           CanStoreSlow(addr, size_bytes);
  }
  // Reads code bytes for the decoder. Returns how many could be read: those
  // that are executable.
  size_t Fetch(uint64_t addr, std::span<std::byte> bytes) const;

  // Accesses of the kernel and the debugger: any size, protection ignored.
  // These return false, with nothing changed, if a byte is not mapped.
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
  // Does the same, but counted from the state at this call: only states that
  // this memory goes through from here on can be compared. Costs nothing.
  void EnableRelativeDigest();
  uint64_t digest() const { return digest_; }

  // Changes with every change of mapping or contents of an executable page, so
  // that a cache of decoded code knows when to forget. Two memories of one
  // process image with equal versions have equal code: versions are never used
  // twice within a program.
  uint64_t code_version() const { return code_version_; }

 private:
  static constexpr size_t kTlbEntries = 256;
  struct TlbEntry {
    uint64_t page_number = ~uint64_t{0};  // of no canonical address
    std::byte* host = nullptr;
  };
  using Tlb = std::array<TlbEntry, kTlbEntries>;
  // One thing to undo: up to 8 bytes of contents, a slot, or many; or which
  // pages are shared.
  struct UndoEntry {
    uint64_t addr = 0;
    uint64_t old_bytes = 0;
    // kSlotEntry: slots_[old_bytes] was page `addr`. kPartEntry: the chunks
    // from `addr` on had parts_[old_bytes]. kSharedEntry: shared_ was
    // shared_log_[old_bytes].
    uint32_t size_bytes = 0;
  };
  static constexpr uint32_t kSlotEntry = 0;
  static constexpr uint32_t kPartEntry = UINT32_MAX;
  static constexpr uint32_t kSharedEntry = UINT32_MAX - 1;
  using Shared = std::shared_ptr<const SharedMappings>;
  // What some chunks had, the last of which is before `end`.
  struct Part {
    uint64_t end = 0;
    PageTable pages;
  };

  static size_t TlbIndex(uint64_t addr) {
    return (addr >> kPageShift) % kTlbEntries;
  }
  static bool Hit(const TlbEntry& entry, uint64_t addr, uint64_t size_bytes) {
    return entry.page_number == addr >> kPageShift &&
           size_bytes <= kPageBytes &&
           addr % kPageBytes <= kPageBytes - size_bytes;
  }
  bool CanStoreSlow(uint64_t addr, uint64_t size_bytes) const;
  bool Allowed(uint64_t addr, uint64_t size_bytes, uint32_t prot) const;
  void CopyOut(uint64_t addr, std::span<std::byte> bytes) const;
  void CopyIn(uint64_t addr, std::span<const std::byte> bytes);
  void CopyIntoPage(uint64_t addr, std::span<const std::byte> bytes);
  void CopyIntoMirrors(uint64_t addr, std::span<const std::byte> bytes);
  template <class Visit>
  void VisitMirrors(uint64_t addr, uint64_t size_bytes, Visit visit) const {
    for (uint64_t offset = 0; offset < size_bytes;) {
      const uint64_t in_page = (addr + offset) % kPageBytes;
      const uint64_t part =
          std::min(size_bytes - offset, uint64_t{kPageBytes} - in_page);
      shared_->ForEachMirror(
          (addr + offset) >> kPageShift, [&](uint64_t mirror) {
            visit((mirror << kPageShift) + in_page, offset, part);
          });
      offset += part;
    }
  }
  std::byte* HostToWrite(uint64_t page_number);
  void Track(uint64_t addr, const std::byte* old_bytes,
             std::span<const std::byte> new_bytes);
  void LogOldBytes(uint64_t addr, const std::byte* bytes, size_t size_bytes);
  void ReplaceSlot(uint64_t page_number, PageSlot slot);
  void MakePrivate(uint64_t first, uint64_t end);
  void ReplaceShared(Shared shared);
  void SetShared(Shared shared);
  void SetSlot(uint64_t page_number, PageSlot slot);
  PageTable Exchange(uint64_t first, uint64_t end, PageTable part);
  void ReplaceChunks(uint64_t first, uint64_t end,
                     std::optional<uint32_t> prot);
  void Undo(const UndoEntry& entry);
  void FlushTlb() const;
  void ForgetInTlb(uint64_t page_number) const;
  void Retrack() { tracking_ = undo_on_ || digest_on_; }
  void BumpCodeVersion();

  PageTable pages_;
  Shared shared_;  // nullptr: no page is
  bool has_mirrors_ = false;
  mutable Tlb read_tlb_;
  mutable Tlb write_tlb_;
  bool tracking_ = false;  // undo_on_ || digest_on_
  bool undo_on_ = false;
  bool digest_on_ = false;
  uint64_t digest_ = 0;
  uint64_t code_version_ = 0;
  std::vector<UndoEntry> undo_;
  std::vector<PageSlot> slots_;     // that kSlotEntry entries name
  std::vector<Part> parts_;         // that kPartEntry entries name
  std::vector<Shared> shared_log_;  // that kSharedEntry entries name
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_MEMORY_H_
