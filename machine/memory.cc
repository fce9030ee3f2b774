#include "machine/memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <utility>

#include "common/check.h"
#include "common/digest.h"
#include "common/inputs.h"

namespace clew::machine {
namespace {

uint64_t PageOf(uint64_t addr) { return addr >> kPageShift; }

// The page after the last one that [addr, addr + size_bytes) touches.
uint64_t PageEnd(uint64_t addr, uint64_t size_bytes) {
  const uint64_t last = addr + size_bytes - 1;
  CLEW_CHECK(last >= addr, "range {:#x} + {:#x} wraps", addr, size_bytes);
  return PageOf(last) + 1;
}

// Bytes from `addr` to the end of its page, at most `size_bytes`.
size_t InPage(uint64_t addr, size_t size_bytes) {
  return std::min<size_t>(size_bytes, kPageBytes - addr % kPageBytes);
}

// What one aligned word contributes to the digest; zero words nothing, so that
// zero pages are free.
uint64_t WordDigest(uint64_t addr, uint64_t word) {
  return word == 0 ? 0 : MixBits(word ^ MixBits(addr));
}

// What each page of a chunk weighs in the digest, so that a chunk that is
// mapped all over counts without a look at its pages.
constexpr auto kWeights = [] {
  std::array<uint64_t, PageTable::kChunkPages> weights = {};
  for (uint64_t i = 0; i < weights.size(); ++i) {
    weights[i] = MixBits(i + 1);
  }
  return weights;
}();
constexpr uint64_t kWholeWeight =
    std::accumulate(kWeights.begin(), kWeights.end(), uint64_t{0});

uint64_t ProtectionDigest(uint64_t chunk, uint32_t prot) {
  return MixBits(MixBits(chunk) + prot + 1);
}

uint64_t MappingDigest(uint64_t page_number, uint32_t prot) {
  return ProtectionDigest(page_number / PageTable::kChunkPages, prot) *
         kWeights[page_number % PageTable::kChunkPages];
}

uint64_t SlotDigest(uint64_t page_number, const PageSlot& slot) {
  if (!slot.mapped) {
    return 0;
  }
  uint64_t sum = MappingDigest(page_number, slot.prot);
  if (slot.page != nullptr) {
    for (uint64_t i = 0; i < kPageBytes; i += 8) {
      uint64_t word;
      std::memcpy(&word, slot.page->bytes.data() + i, 8);
      sum += WordDigest((page_number << kPageShift) + i, word);
    }
  }
  return sum;
}

uint64_t DigestOf(const PageTable& pages) {
  uint64_t sum = 0;
  pages.ForEachPage([&](uint64_t page_number, const PageSlot& slot) {
    sum += SlotDigest(page_number, slot);
  });
  pages.ForEachStretch([&](uint64_t first, uint64_t end, uint32_t prot) {
    for (uint64_t chunk = first; chunk < end; ++chunk) {
      sum += ProtectionDigest(chunk, prot) * kWholeWeight;
    }
  });
  return sum;
}

// Never the same twice, see Memory::code_version.
uint64_t NextCodeVersion() {
  static std::atomic<uint64_t> next = 1;
  return next.fetch_add(1, std::memory_order_relaxed);
}

bool Executable(const PageSlot& slot) {
  return slot.mapped && (slot.prot & kProtExec) != 0;
}

bool HasCode(const PageTable& pages) {
  bool has_code = false;
  pages.ForEachPage([&](uint64_t /*page_number*/, const PageSlot& slot) {
    has_code |= Executable(slot);
  });
  pages.ForEachStretch(
      [&](uint64_t /*first*/, uint64_t /*end*/, uint32_t prot) {
        has_code |= (prot & kProtExec) != 0;
      });
  return has_code;
}

// Calls on_pages(first, end) for pages of chunks that [first, end) has in part,
// on_chunks(first, end) for the chunks that it has whole.
template <class OnPages, class OnChunks>
void EachPart(uint64_t first, uint64_t end, OnPages on_pages,
              OnChunks on_chunks) {
  constexpr uint64_t kPages = PageTable::kChunkPages;
  const uint64_t first_chunk = (first + kPages - 1) / kPages;
  const uint64_t end_chunk = end / kPages;
  if (first_chunk >= end_chunk) {
    return on_pages(first, end);
  }
  on_pages(first, first_chunk * kPages);
  on_chunks(first_chunk, end_chunk);
  on_pages(end_chunk * kPages, end);
}

}  // namespace

Memory::Memory() = default;
Memory::~Memory() = default;

Memory::Memory(const Memory& other)
    : pages_(other.pages_),
      shared_(other.shared_),
      has_mirrors_(other.has_mirrors_),
      tracking_(other.digest_on_),
      digest_on_(other.digest_on_),
      digest_(other.digest_),
      code_version_(other.code_version_) {
  other.FlushTlb();  // what it could write without asking is shared now
}

Memory& Memory::operator=(const Memory& other) {
  if (this != &other) {
    *this = Memory(other);
  }
  return *this;
}

Memory::Memory(Memory&& other) noexcept
    : pages_(std::move(other.pages_)),
      shared_(std::move(other.shared_)),
      has_mirrors_(std::exchange(other.has_mirrors_, false)),
      undo_on_(other.undo_on_),
      digest_on_(other.digest_on_),
      digest_(other.digest_),
      code_version_(other.code_version_),
      undo_(std::move(other.undo_)),
      slots_(std::move(other.slots_)),
      parts_(std::move(other.parts_)),
      shared_log_(std::move(other.shared_log_)) {
  Retrack();
  other.FlushTlb();
}

Memory& Memory::operator=(Memory&& other) noexcept {
  pages_ = std::move(other.pages_);
  shared_ = std::move(other.shared_);
  has_mirrors_ = std::exchange(other.has_mirrors_, false);
  undo_on_ = other.undo_on_;
  digest_on_ = other.digest_on_;
  digest_ = other.digest_;
  code_version_ = other.code_version_;
  undo_ = std::move(other.undo_);
  slots_ = std::move(other.slots_);
  parts_ = std::move(other.parts_);
  shared_log_ = std::move(other.shared_log_);
  Retrack();
  FlushTlb();
  other.FlushTlb();
  return *this;
}

void Memory::FlushTlb() const {
  read_tlb_.fill(TlbEntry());
  write_tlb_.fill(TlbEntry());
}

void Memory::ForgetInTlb(uint64_t page_number) const {
  read_tlb_[page_number % kTlbEntries] = TlbEntry();
  write_tlb_[page_number % kTlbEntries] = TlbEntry();
}

void Memory::BumpCodeVersion() { code_version_ = NextCodeVersion(); }

// Every change of mapping goes through here: digest, code version, TLB.
void Memory::SetSlot(uint64_t page_number, PageSlot slot) {
  if (digest_on_) {
    digest_ += SlotDigest(page_number, slot);
  }
  const bool code = Executable(slot);
  const PageSlot old = pages_.Replace(page_number, std::move(slot));
  if (digest_on_) {
    digest_ -= SlotDigest(page_number, old);
  }
  if (code || Executable(old)) {
    BumpCodeVersion();
  }
  ForgetInTlb(page_number);
}

// A thread's stack is 2,048 pages, of which it uses three: that a page stays
// as it is has to cost next to nothing.
void Memory::ReplaceSlot(uint64_t page_number, PageSlot slot) {
  const PageSlot* old = pages_.Find(page_number);
  if (old != nullptr ? *old == slot : !slot.mapped) {
    return;
  }
  if (undo_on_) {
    undo_.push_back({page_number, slots_.size(), kSlotEntry});
    slots_.push_back(old != nullptr ? *old : PageSlot());
    // The write TLB may point into a page that the log holds too now.
    ForgetInTlb(page_number);
  }
  SetSlot(page_number, std::move(slot));
}

void Memory::SetShared(Shared shared) {
  if (digest_on_) {
    digest_ += (shared != nullptr ? shared->Digest() : 0) -
               (shared_ != nullptr ? shared_->Digest() : 0);
  }
  shared_ = std::move(shared);
  has_mirrors_ = shared_ != nullptr && shared_->has_mirrors();
  FlushTlb();  // pages with mirrors are not written past CopyIntoPage
}

void Memory::ReplaceShared(Shared shared) {
  if (undo_on_) {
    undo_.push_back({0, shared_log_.size(), kSharedEntry});
    shared_log_.push_back(shared_);
  }
  SetShared(std::move(shared));
}

void Memory::MakePrivate(uint64_t first, uint64_t end) {
  if (shared_ == nullptr || !shared_->HasIn(first, end)) {
    return;
  }
  auto left = std::make_shared<SharedMappings>(*shared_);
  left->Remove(first, end);
  ReplaceShared(left->empty() ? nullptr : std::move(left));
}

// Returns what the chunks from `first` up to `end` had.
PageTable Memory::Exchange(uint64_t first, uint64_t end, PageTable part) {
  PageTable old = pages_.TakeOut(first, end);
  if (digest_on_) {
    digest_ += DigestOf(part) - DigestOf(old);
  }
  if (HasCode(part) || HasCode(old)) {
    BumpCodeVersion();
  }
  pages_.PutIn(std::move(part));
  FlushTlb();
  return old;
}

// Maps the chunks from `first` up to `end` zero; nullopt: unmaps them.
void Memory::ReplaceChunks(uint64_t first, uint64_t end,
                           std::optional<uint32_t> prot) {
  constexpr uint64_t kPages = PageTable::kChunkPages;
  const PageSlot* const old = pages_.Find(first * kPages);
  const bool stays =
      prot ? pages_.StretchEnd(first).value_or(0) >= end && old->prot == *prot
           : pages_.FirstMapped(first * kPages, end * kPages) == end * kPages;
  if (stays) {
    return;
  }
  PageTable part;
  if (prot) {
    part.PutStretch(first, end, *prot);
  }
  PageTable had = Exchange(first, end, std::move(part));
  if (undo_on_) {
    undo_.push_back({first, parts_.size(), kPartEntry});
    parts_.push_back({.end = end, .pages = std::move(had)});
  }
}

void Memory::Map(uint64_t addr, uint64_t size_bytes, uint32_t prot) {
  if (size_bytes == 0) {
    return;
  }
  MakePrivate(PageOf(addr), PageEnd(addr, size_bytes));
  EachPart(
      PageOf(addr), PageEnd(addr, size_bytes),
      [&](uint64_t first, uint64_t end) {
        for (uint64_t page = first; page < end; ++page) {
          ReplaceSlot(page, PageSlot{nullptr, prot, true});
        }
      },
      [&](uint64_t first, uint64_t end) { ReplaceChunks(first, end, prot); });
}

// The mirrors' pages are shared until one is written, as a snapshot's are.
void Memory::MapShared(uint64_t addr, uint64_t size_bytes, uint32_t prot,
                       uint64_t number) {
  if (size_bytes == 0) {
    return;
  }
  Map(addr, size_bytes, prot);
  const uint64_t first = PageOf(addr);
  const uint64_t end = PageEnd(addr, size_bytes);
  auto shared = shared_ != nullptr ? std::make_shared<SharedMappings>(*shared_)
                                   : std::make_shared<SharedMappings>();
  shared->Add(first, end, number);
  ReplaceShared(shared);
  shared->ForEachMirroredStretch(
      first, end, [&](uint64_t part, uint64_t part_end, uint64_t mirror) {
        const uint64_t mirror_end = mirror + (part_end - part);
        for (uint64_t page = pages_.FirstMapped(mirror, mirror_end, true);
             page < mirror_end;
             page = pages_.FirstMapped(page + 1, mirror_end, true)) {
          ReplaceSlot(part + (page - mirror),
                      PageSlot{pages_.Find(page)->page, prot, true});
          ForgetInTlb(page);  // its bytes are not its own any more
        }
      });
}

void Memory::Unmap(uint64_t addr, uint64_t size_bytes) {
  if (size_bytes == 0) {
    return;
  }
  MakePrivate(PageOf(addr), PageEnd(addr, size_bytes));
  EachPart(
      PageOf(addr), PageEnd(addr, size_bytes),
      [&](uint64_t first, uint64_t end) {
        for (uint64_t page = pages_.FirstMapped(first, end); page < end;
             page = pages_.FirstMapped(page + 1, end)) {
          ReplaceSlot(page, PageSlot());
        }
      },
      [&](uint64_t first, uint64_t end) {
        ReplaceChunks(first, end, std::nullopt);
      });
}

void Memory::Protect(uint64_t addr, uint64_t size_bytes, uint32_t prot) {
  if (size_bytes == 0) {
    return;
  }
  constexpr uint64_t kPages = PageTable::kChunkPages;
  const uint64_t end = PageEnd(addr, size_bytes);
  uint64_t page = pages_.FirstMapped(PageOf(addr), end);
  while (page < end) {
    const uint64_t chunk = page / kPages;
    const uint64_t whole_end =
        page % kPages != 0
            ? chunk
            : std::min(pages_.StretchEnd(chunk).value_or(chunk), end / kPages);
    if (whole_end > chunk) {
      ReplaceChunks(chunk, whole_end, prot);
      page = whole_end * kPages;
    } else {
      PageSlot slot = *pages_.Find(page);
      if (slot.prot != prot) {
        slot.prot = prot;
        ReplaceSlot(page, std::move(slot));
      }
      ++page;
    }
    page = pages_.FirstMapped(page, end);
  }
}

void Memory::Clear(uint64_t addr, uint64_t size_bytes) {
  if (size_bytes == 0) {
    return;
  }
  const uint64_t end = PageEnd(addr, size_bytes);
  for (uint64_t page = pages_.FirstMapped(PageOf(addr), end, true); page < end;
       page = pages_.FirstMapped(page + 1, end, true)) {
    if (!SharedNumberAt(page << kPageShift)) {
      ReplaceSlot(page, PageSlot{nullptr, pages_.Find(page)->prot, true});
    }
  }
}

void Memory::Move(uint64_t from, uint64_t to, uint64_t size_bytes) {
  if (size_bytes == 0) {
    return;
  }
  const uint64_t pages = PageEnd(from, size_bytes) - PageOf(from);
  CLEW_CHECK(
      PageOf(from) + pages <= PageOf(to) || PageOf(to) + pages <= PageOf(from),
      "moving {:#x} to {:#x}: the ranges overlap", from, to);
  const auto has_shared = [&](uint64_t addr) {
    return shared_ != nullptr &&
           shared_->HasIn(PageOf(addr), PageOf(addr) + pages);
  };
  if (has_shared(from) || has_shared(to)) {
    auto moved = std::make_shared<SharedMappings>(*shared_);
    moved->Move(PageOf(from), PageOf(to), pages);
    ReplaceShared(moved->empty() ? nullptr : std::move(moved));
  }
  for (uint64_t i = 0; i < pages; ++i) {
    const PageSlot* slot = pages_.Find(PageOf(from) + i);
    PageSlot moved = slot != nullptr ? *slot : PageSlot();
    ReplaceSlot(PageOf(from) + i, PageSlot());
    ReplaceSlot(PageOf(to) + i, std::move(moved));
  }
}

std::optional<uint32_t> Memory::ProtectionAt(uint64_t addr) const {
  const PageSlot* slot = pages_.Find(PageOf(addr));
  return slot != nullptr ? std::optional(slot->prot) : std::nullopt;
}

std::optional<uint64_t> Memory::AddrOfShared(uint64_t number) const {
  const auto page =
      shared_ == nullptr ? std::nullopt : shared_->PageWith(number);
  return page ? std::optional(*page << kPageShift) : std::nullopt;
}

uint64_t Memory::SharedBytesAt(uint64_t addr) const {
  const auto end =
      shared_ == nullptr ? std::nullopt : shared_->EndAt(PageOf(addr));
  return end ? (*end << kPageShift) - addr : 0;
}

// Whether all bytes are mapped with all bits of `prot`; any size, no wrapping.
bool Memory::Allowed(uint64_t addr, uint64_t size_bytes, uint32_t prot) const {
  if (size_bytes == 0) {
    return true;
  }
  const uint64_t last = addr + size_bytes - 1;
  if (last < addr) {
    return false;
  }
  for (uint64_t page = PageOf(addr); page <= PageOf(last); ++page) {
    const PageSlot* slot = pages_.Find(page);
    if (slot == nullptr || (slot->prot & prot) != prot) {
      return false;
    }
  }
  return true;
}

bool Memory::CanLoad(uint64_t addr, uint64_t size_bytes) const {
  return Allowed(addr, size_bytes, kProtRead);
}

bool Memory::CanStoreSlow(uint64_t addr, uint64_t size_bytes) const {
  return Allowed(addr, size_bytes, kProtWrite);
}

// REQUIRES: all bytes are mapped.
void Memory::CopyOut(uint64_t addr, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const size_t n = InPage(addr, bytes.size());
    const std::byte* host = PageTable::Bytes(*pages_.Find(PageOf(addr)));
    std::memcpy(bytes.data(), host + addr % kPageBytes, n);
    bytes = bytes.subspan(n);
    addr += n;
  }
}

void Memory::CopyIn(uint64_t addr, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t n = InPage(addr, bytes.size());
    CopyIntoPage(addr, bytes.first(n));
    if (has_mirrors_) [[unlikely]] {
      CopyIntoMirrors(addr, bytes.first(n));
    }
    bytes = bytes.subspan(n);
    addr += n;
  }
}

// The page's bytes, made ours alone; refreshes what the TLB knows of it.
std::byte* Memory::HostToWrite(uint64_t page_number) {
  const size_t index = page_number % kTlbEntries;
  if (write_tlb_[index].page_number == page_number) {
    return write_tlb_[index].host;
  }
  std::byte* host = pages_.WritableBytes(page_number);
  ForgetInTlb(page_number);
  const PageSlot& slot = *pages_.Find(page_number);
  if ((slot.prot & kProtWrite) != 0 && !Executable(slot) &&
      !HasMirror(page_number << kPageShift, 1)) {
    write_tlb_[index] = TlbEntry{page_number, host};
  }
  return host;
}

void Memory::CopyIntoPage(uint64_t addr, std::span<const std::byte> bytes) {
  std::byte* host = HostToWrite(PageOf(addr));
  std::byte* place = host + addr % kPageBytes;
  if (tracking_) {
    Track(addr, place, bytes);
  }
  if (Executable(*pages_.Find(PageOf(addr))) &&
      !std::equal(bytes.begin(), bytes.end(), place)) {
    BumpCodeVersion();
  }
  std::memcpy(place, bytes.data(), bytes.size());
}

void Memory::CopyIntoMirrors(uint64_t addr, std::span<const std::byte> bytes) {
  ForEachMirror(addr, bytes.size(),
                [&](uint64_t at, uint64_t offset, uint64_t size_bytes) {
                  CopyIntoPage(at, bytes.subspan(offset, size_bytes));
                });
}

bool Memory::Load(uint64_t addr, std::span<std::byte> bytes) const {
  const TlbEntry& entry = read_tlb_[TlbIndex(addr)];
  if (Hit(entry, addr, bytes.size())) {
    std::memcpy(bytes.data(), entry.host + addr % kPageBytes, bytes.size());
    return true;
  }
  if (!Allowed(addr, bytes.size(), kProtRead)) {
    return false;
  }
  CopyOut(addr, bytes);
  const uint64_t page = PageOf(addr);
  // Written pages live in the slot's page, so reads may go there directly; the
  // bytes are never changed through this pointer.
  auto* host = const_cast<std::byte*>(PageTable::Bytes(*pages_.Find(page)));
  read_tlb_[page % kTlbEntries] = TlbEntry{page, host};
  return true;
}

bool Memory::Store(uint64_t addr, std::span<const std::byte> bytes) {
  if (Hit(write_tlb_[TlbIndex(addr)], addr, bytes.size())) {
    std::byte* place = write_tlb_[TlbIndex(addr)].host + addr % kPageBytes;
    if (tracking_) {
      Track(addr, place, bytes);
    }
    std::memcpy(place, bytes.data(), bytes.size());
    return true;
  }
  if (!Allowed(addr, bytes.size(), kProtWrite)) {
    return false;
  }
  CopyIn(addr, bytes);
  return true;
}

size_t Memory::Fetch(uint64_t addr, std::span<std::byte> bytes) const {
  size_t done = 0;
  while (done < bytes.size() && Allowed(addr + done, 1, kProtExec)) {
    const size_t n = InPage(addr + done, bytes.size() - done);
    CopyOut(addr + done, bytes.subspan(done, n));
    done += n;
  }
  return done;
}

bool Memory::Peek(uint64_t addr, std::span<std::byte> bytes) const {
  if (!Allowed(addr, bytes.size(), 0)) {
    return false;
  }
  CopyOut(addr, bytes);
  return true;
}

bool Memory::Poke(uint64_t addr, std::span<const std::byte> bytes) {
  if (!Allowed(addr, bytes.size(), 0)) {
    return false;
  }
  CopyIn(addr, bytes);
  return true;
}

// Before bytes within one page change: the log and the digest, word by word.
void Memory::Track(uint64_t addr, const std::byte* old_bytes,
                   std::span<const std::byte> new_bytes) {
  if (undo_on_) {
    LogOldBytes(addr, old_bytes, new_bytes.size());
  }
  if (!digest_on_) {
    return;
  }
  const uint64_t end = addr + new_bytes.size();
  for (uint64_t word = addr / 8 * 8; word < end; word += 8) {
    std::byte image[8];
    // The aligned word is within the page: its bytes are there to read.
    std::memcpy(image, old_bytes - addr % kPageBytes + word % kPageBytes, 8);
    uint64_t value;
    std::memcpy(&value, image, 8);
    digest_ -= WordDigest(word, value);
    const uint64_t from = std::max(word, addr);
    std::memcpy(image + (from - word), new_bytes.data() + (from - addr),
                std::min(word + 8, end) - from);
    std::memcpy(&value, image, 8);
    digest_ += WordDigest(word, value);
  }
}

void Memory::LogOldBytes(uint64_t addr, const std::byte* bytes,
                         size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; i += 8) {
    UndoEntry entry{addr + i, 0, 0};
    entry.size_bytes =
        static_cast<uint32_t>(std::min<size_t>(8, size_bytes - i));
    std::memcpy(&entry.old_bytes, bytes + i, entry.size_bytes);
    undo_.push_back(entry);
  }
}

Memory::Mark Memory::SetMark() {
  undo_on_ = true;
  Retrack();
  return undo_.size();
}

void Memory::Undo(const UndoEntry& entry) {
  if (entry.size_bytes == kSlotEntry) {
    PageSlot slot = std::move(slots_[entry.old_bytes]);
    slots_.resize(entry.old_bytes);
    SetSlot(entry.addr, std::move(slot));
  } else if (entry.size_bytes == kPartEntry) {
    Part part = std::move(parts_[entry.old_bytes]);
    parts_.resize(entry.old_bytes);
    Exchange(entry.addr, part.end, std::move(part.pages));
  } else if (entry.size_bytes == kSharedEntry) {
    Shared shared = std::move(shared_log_[entry.old_bytes]);
    shared_log_.resize(entry.old_bytes);
    SetShared(std::move(shared));
  } else {
    // Not in its mirrors: what they had is in the log, too.
    CopyIntoPage(
        entry.addr,
        std::as_bytes(std::span(&entry.old_bytes, 1)).first(entry.size_bytes));
  }
}

void Memory::RollBack(Mark mark) {
  CLEW_CHECK(undo_on_ && mark <= undo_.size(),
             "mark {} was dropped or rolled back past", mark);
  undo_on_ = false;
  Retrack();
  while (undo_.size() > mark) {
    const UndoEntry entry = undo_.back();
    undo_.pop_back();
    Undo(entry);
  }
  undo_on_ = true;
  Retrack();
}

void Memory::DropMarks() {
  undo_on_ = false;
  Retrack();
  undo_.clear();
  slots_.clear();
  parts_.clear();
  shared_log_.clear();
}

void Memory::EnableDigest() {
  if (digest_on_) {
    return;
  }
  digest_on_ = true;
  Retrack();
  digest_ = DigestOf(pages_) + (shared_ != nullptr ? shared_->Digest() : 0);
}

void Memory::EnableRelativeDigest() {
  digest_on_ = true;
  digest_ = 0;
  Retrack();
}

}  // namespace clew::machine
