// Goal: memory after mremap is what the kernel's is: contents go along, what
// was left is unmapped or, with MREMAP_DONTUNMAP, zeros under the same
// protection; and of each call it is told where contents changed. Method: each
// form by hand, against the manual page; random calls, memory compared before
// and after.
#include "follower/kernel/call_mappings.h"

#include <asm/unistd_64.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "common/linux/syscall_table.h"
#include "common/x86/page.h"

namespace clew::follower {
namespace {

constexpr uint64_t kFrom = 0x10000;
constexpr uint64_t kTo = 0x40000;
constexpr uint32_t kProt = kProtRead | kProtWrite;

class RemapTest : public testing::Test {
 protected:
  // Two pages at kFrom that have their numbers, 1 and 2.
  void SetUp() override {
    memory_.Map(kFrom, 2 * kPageBytes, kProt);
    ASSERT_TRUE(memory_.Store(kFrom, uint8_t{1}));
    ASSERT_TRUE(memory_.Store(kFrom + kPageBytes, uint8_t{2}));
  }
  void Remap(uint64_t old_pages, uint64_t new_pages, uint64_t flags,
             uint64_t to) {
    SyscallInput call;
    call.number = __NR_mremap;
    call.args = {kFrom, old_pages * kPageBytes, new_pages * kPageBytes, flags};
    call.result = static_cast<int64_t>(to);
    uint64_t brk = 0;
    ApplyMappings(call, memory_, brk);
  }
  // nullopt: not mapped.
  std::optional<int> At(uint64_t addr) const {
    uint8_t byte = 0;
    return memory_.Load(addr, byte) ? std::optional<int>(byte) : std::nullopt;
  }
  machine::Memory memory_;
};

TEST_F(RemapTest, AMoveTakesContentsAlongAndLeavesNothing) {
  Remap(2, 2, MREMAP_MAYMOVE, kTo);
  EXPECT_EQ(At(kTo), 1);
  EXPECT_EQ(At(kTo + kPageBytes), 2);
  EXPECT_EQ(At(kFrom), std::nullopt);
}

TEST_F(RemapTest, WhatIsNotToBeUnmappedIsZeroAndProtectedAsBefore) {
  memory_.Protect(kFrom, 2 * kPageBytes, kProtRead);
  Remap(2, 2, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, kTo);
  EXPECT_EQ(At(kTo), 1);
  EXPECT_EQ(At(kFrom), 0);
  EXPECT_EQ(At(kFrom + kPageBytes), 0);
  EXPECT_EQ(memory_.ProtectionAt(kFrom), kProtRead);
}

TEST_F(RemapTest, WhatIsGrownIsZeroBehindTheContents) {
  Remap(2, 3, MREMAP_MAYMOVE, kTo);
  EXPECT_EQ(At(kTo + kPageBytes), 2);
  EXPECT_EQ(At(kTo + 2 * kPageBytes), 0);
  EXPECT_EQ(memory_.ProtectionAt(kTo + 2 * kPageBytes), kProt);
  EXPECT_EQ(At(kFrom), std::nullopt);
}

TEST_F(RemapTest, WhatIsShrunkLosesItsEndHereAndThere) {
  Remap(2, 1, 0, kFrom);
  EXPECT_EQ(At(kFrom), 1);
  EXPECT_EQ(At(kFrom + kPageBytes), std::nullopt);
}

TEST_F(RemapTest, WhatIsShrunkAndMovedLeavesNothing) {
  Remap(2, 1, MREMAP_MAYMOVE | MREMAP_FIXED, kTo);
  EXPECT_EQ(At(kTo), 1);
  EXPECT_EQ(At(kTo + kPageBytes), std::nullopt);
  EXPECT_EQ(At(kFrom), std::nullopt);
  EXPECT_EQ(At(kFrom + kPageBytes), std::nullopt);
}

constexpr uint64_t kPages = 12;

// What each page of a small memory begins with; nullopt: not mapped.
using Contents = std::array<std::optional<uint64_t>, kPages>;

Contents ContentsOf(const machine::Memory& memory) {
  Contents contents;
  for (uint64_t page = 0; page < kPages; ++page) {
    uint64_t word = 0;
    if (memory.Peek(kFrom + page * kPageBytes,
                    std::as_writable_bytes(std::span(&word, 1)))) {
      contents[page] = word;
    }
  }
  return contents;
}

class CallMaker {
 public:
  explicit CallMaker(uint64_t seed) : random_(seed) {}

  // The end of the heap is `brk`.
  SyscallInput Next(uint64_t brk) {
    const uint64_t pages = 1 + random_() % 3;
    const uint64_t at = Page(pages);
    SyscallInput call;
    switch (random_() % 5) {
      case 0:
        return Call(__NR_mmap, {at, pages * kPageBytes, 3, MAP_FIXED}, at);
      case 1:
        return Call(__NR_munmap, {at, pages * kPageBytes}, 0);
      case 2:
        return Call(__NR_madvise, {at, pages * kPageBytes, MADV_DONTNEED}, 0);
      case 3: {
        const uint64_t to = brk == at ? at + kPageBytes : at;
        return Call(__NR_brk, {to}, to);
      }
      default: {
        const uint64_t new_pages = 1 + random_() % 3;
        const uint64_t to = Page(new_pages);
        const bool apart =
            to >= at + pages * kPageBytes || at >= to + new_pages * kPageBytes;
        return apart ? Call(__NR_mremap,
                            {at, pages * kPageBytes, new_pages * kPageBytes,
                             MREMAP_MAYMOVE | MREMAP_FIXED, to},
                            to)
                     : Call(__NR_munmap, {at, kPageBytes}, 0);
      }
    }
  }

 private:
  uint64_t Page(uint64_t pages) {
    return kFrom + random_() % (kPages - pages + 1) * kPageBytes;
  }
  static SyscallInput Call(uint64_t number, std::array<uint64_t, 6> args,
                           uint64_t result) {
    SyscallInput call;
    call.number = number;
    call.args = args;
    call.result = static_cast<int64_t>(result);
    return call;
  }

  std::mt19937_64 random_;
};

TEST(CallMappingsTest, ContentsChangeWhereItIsTold) {
  uint64_t changed_pages = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    CallMaker maker(seed);
    machine::Memory memory;
    uint64_t brk = kFrom;
    for (uint64_t stored = 1; stored <= 20; ++stored) {
      for (uint64_t page = 0; page < kPages; ++page) {
        (void)memory.Store(kFrom + page * kPageBytes, stored << 8 | page);
      }
      const SyscallInput call = maker.Next(brk);
      const Contents before = ContentsOf(memory);
      const std::vector<MemoryRange> told = ApplyMappings(call, memory, brk);
      const Contents after = ContentsOf(memory);
      for (uint64_t page = 0; page < kPages; ++page) {
        const uint64_t addr = kFrom + page * kPageBytes;
        const bool is_told =
            std::ranges::any_of(told, [&](const MemoryRange& range) {
              return addr - range.addr < range.size_bytes;
            });
        const bool changed = after[page] != before[page];
        if (after[page]) {
          changed_pages += changed ? 1 : 0;
          EXPECT_EQ(is_told, changed)
              << SyscallName(call.number) << ", page " << page;
        }
      }
    }
  }
  EXPECT_GT(changed_pages, 3000u);
}

std::vector<MemoryRange> MappedNow() {
  std::vector<MemoryRange> mapped;
  std::ifstream maps("/proc/self/maps");
  std::string rest;
  uint64_t begin = 0;
  uint64_t end = 0;
  for (char dash = 0; maps >> std::hex >> begin >> dash >> end;) {
    mapped.push_back({begin, end - begin});
    std::getline(maps, rest);
  }
  return mapped;
}

bool Overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.addr < b.addr + b.size_bytes && b.addr < a.addr + a.size_bytes;
}

// Calls of this process that map memory, told where to or not.
class MappingCalls {
 public:
  explicit MappingCalls(uint64_t seed) : random_(seed) {}
  ~MappingCalls() {
    for (const MemoryRange& range : own_) {
      munmap(reinterpret_cast<void*>(range.addr), range.size_bytes);
    }
  }

  SyscallInput MakeOne() {
    const size_t at = own_.empty() ? 0 : random_() % own_.size();
    const uint64_t bytes = (1 + random_() % 4) * kPageBytes;
    const uint64_t form = random_() % 8;
    if (form == 0 && !own_.empty()) {
      return Make(__NR_munmap, {own_[at].addr, own_[at].size_bytes}, at, 0);
    }
    if (form < 4 && !own_.empty()) {
      return Make(__NR_mremap,
                  {own_[at].addr, own_[at].size_bytes, bytes, MREMAP_MAYMOVE},
                  at, bytes);
    }
    const uint64_t hint = own_.empty() ? 0 : own_[at].addr + form * kPageBytes;
    const uint64_t flags =
        MAP_PRIVATE | MAP_ANONYMOUS | (form == 7 ? MAP_FIXED_NOREPLACE : 0);
    return Make(__NR_mmap, {form == 4 ? 0 : hint, bytes, kProt, flags, ~0ull},
                own_.size(), bytes);
  }

 private:
  // It leaves so many bytes of the mapping of that number.
  SyscallInput Make(uint64_t number, const std::array<uint64_t, 6>& args,
                    size_t mapping, uint64_t bytes) {
    SyscallInput call;
    call.number = number;
    call.args = args;
    const long result = syscall(static_cast<long>(number), args[0], args[1],
                                args[2], args[3], args[4], args[5]);
    call.result = result == -1 ? -errno : result;
    if (result != -1) {
      own_.resize(std::max(own_.size(), mapping + 1));
      own_[mapping] = {static_cast<uint64_t>(result), bytes};
      std::erase_if(
          own_, [](const MemoryRange& each) { return each.size_bytes == 0; });
    }
    return call;
  }

  std::mt19937_64 random_;
  std::vector<MemoryRange> own_;
};

// Oracle: the kernel.
TEST(CallMappingsTest, NothingIsMappedWhereACallFindsRoom) {
  uint64_t found = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    MappingCalls calls(seed);
    for (int i = 0; i < 40; ++i) {
      const std::vector<MemoryRange> before = MappedNow();
      const SyscallInput call = calls.MakeOne();
      const MemoryRange room =
          call.result < 0 ? MemoryRange() : RoomFoundBy(call);
      for (const MemoryRange& mapped : before) {
        EXPECT_FALSE(room.size_bytes != 0 && Overlap(room, mapped))
            << SyscallName(call.number);
      }
      found += room.size_bytes != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(found, 500u);
}

TEST(CallMappingsTest, OneThatIsToldWhereFindsNoRoom) {
  SyscallInput call;
  call.number = __NR_mmap;
  call.args = {kTo, kPageBytes, kProt, MAP_PRIVATE | MAP_FIXED};
  call.result = kTo;
  EXPECT_EQ(RoomFoundBy(call), MemoryRange());
  call.number = __NR_mremap;
  call.args = {kFrom, kPageBytes, kPageBytes, MREMAP_MAYMOVE | MREMAP_FIXED,
               kTo};
  EXPECT_EQ(RoomFoundBy(call), MemoryRange());
}

}  // namespace
}  // namespace clew::follower
