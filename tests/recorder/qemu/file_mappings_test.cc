// Goal: what a call changes in a file is told as memory wherever the file is
// mapped then, and nothing else; files that others may write are named.
// Method: calls made for real by this process on a file of its own, for every
// way that a row has; mappings by every call that makes, moves or ends one.
#include "recorder/qemu/calls/file_mappings.h"

#include <asm/unistd_64.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/inputs.h"

namespace clew::recorder {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kFileBytes = 4 * kPageBytes;
constexpr uint64_t kAt = 0x20000000;  // where the file is mapped

class FileMappingsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/clew-mappings-XXXXXX";
    fd_ = mkstemp(name);
    path_ = name;
    ASSERT_EQ(ftruncate(fd_, kFileBytes), 0);
  }
  void TearDown() override {
    close(fd_);
    unlink(path_.c_str());
  }
  uint64_t fd() const { return static_cast<uint64_t>(fd_); }
  SyscallCall Call(uint64_t number, std::array<uint64_t, 6> args) const {
    return *BeginSyscall(number, args, memory_);
  }
  void Follow(const SyscallCall& call, int64_t result) {
    files_.Follow(call, result, memory_);
  }
  void MapAt(uint64_t addr, uint64_t bytes, uint64_t offset,
             uint64_t flags = MAP_SHARED, uint64_t prot = PROT_READ) {
    Follow(Call(__NR_mmap, {0, bytes, prot, flags, fd(), offset}),
           static_cast<int64_t>(addr));
  }
  std::vector<MemoryRange> Changed(uint64_t number,
                                   std::array<uint64_t, 6> args,
                                   int64_t result) const {
    return files_.ChangedBy(Call(number, args), result, memory_);
  }
  std::vector<MemoryRange> Pwrite(uint64_t offset, uint64_t bytes) const {
    return Changed(__NR_pwrite64, {fd(), 0, bytes, offset},
                   static_cast<int64_t>(bytes));
  }

  int fd_ = -1;
  std::string path_;
  GuestMemory memory_ = *GuestMemory::Open();
  FileMappings files_;
};

TEST_F(FileMappingsTest, AWriteChangesWhatIsMappedOfIt) {
  MapAt(kAt, 2 * kPageBytes, kPageBytes);
  EXPECT_THAT(Pwrite(kPageBytes + 5, 7), ElementsAre(MemoryRange{kAt + 5, 7}));
  EXPECT_THAT(Pwrite(kPageBytes - 5, 7), ElementsAre(MemoryRange{kAt, 2}));
  EXPECT_THAT(Pwrite(3 * kPageBytes - 5, 7),
              ElementsAre(MemoryRange{kAt + 2 * kPageBytes - 5, 5}));
  EXPECT_THAT(Pwrite(0, 100), IsEmpty());
  EXPECT_THAT(Changed(__NR_pwrite64, {fd(), 0, 9, kPageBytes}, -EIO),
              IsEmpty());
}

TEST_F(FileMappingsTest, EveryMappingOfTheFileIsChangedAndNoOther) {
  MapAt(kAt, kPageBytes, 0);
  MapAt(kAt + 0x100000, kPageBytes, 0, MAP_PRIVATE);
  EXPECT_THAT(Pwrite(8, 4), ElementsAre(MemoryRange{kAt + 8, 4},
                                        MemoryRange{kAt + 0x100008, 4}));
  const int other = memfd_create("other", 0);
  EXPECT_THAT(
      Changed(__NR_pwrite64, {static_cast<uint64_t>(other), 0, 4, 8}, 4),
      IsEmpty());
  close(other);
}

TEST_F(FileMappingsTest, WritesWithoutAnOffsetEndAtThePosition) {
  MapAt(kAt, kFileBytes, 0);
  lseek(fd_, 110, SEEK_SET);
  for (const uint64_t number : {__NR_write, __NR_writev, __NR_sendfile}) {
    EXPECT_THAT(Changed(number, {fd(), 0, 0}, 10),
                ElementsAre(MemoryRange{kAt + 100, 10}))
        << number;
  }
  EXPECT_THAT(Changed(__NR_pwritev2, {fd(), 0, 0, UINT64_MAX}, 10),
              ElementsAre(MemoryRange{kAt + 100, 10}));
  EXPECT_THAT(Changed(__NR_copy_file_range, {0, 0, fd(), 0, 10}, 10),
              ElementsAre(MemoryRange{kAt + 100, 10}));
}

TEST_F(FileMappingsTest, AnAppendedWriteIsAtTheEndWhateverItsOffset) {
  MapAt(kAt, kFileBytes, 0);
  fcntl(fd_, F_SETFL, O_APPEND);
  EXPECT_THAT(Pwrite(0, 16),
              ElementsAre(MemoryRange{kAt + kFileBytes - 16, 16}));
}

TEST_F(FileMappingsTest, HolesAndTruncationsAreChangesToo) {
  MapAt(kAt, kFileBytes, 0);
  EXPECT_THAT(
      Changed(__NR_fallocate,
              {fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 10, 20}, 0),
      ElementsAre(MemoryRange{kAt + 10, 20}));
  EXPECT_THAT(Changed(__NR_fallocate, {fd(), 0, 10, 20}, 0), IsEmpty());
  ASSERT_EQ(ftruncate(fd_, 5000), 0);
  EXPECT_THAT(Changed(__NR_ftruncate, {fd(), 5000}, 0),
              ElementsAre(MemoryRange{kAt + 5000, 2 * kPageBytes - 5000}));
}

TEST_F(FileMappingsTest, OfDiscardedMemoryThatIsToldWhichIsNotZero) {
  void* at =
      mmap(reinterpret_cast<void*>(kAt), 4 * kPageBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  const uint64_t addr = kAt;
  ASSERT_EQ(reinterpret_cast<uint64_t>(at), addr);
  static_cast<char*>(at)[2 * kPageBytes + 7] = 1;
  EXPECT_THAT(Changed(__NR_madvise, {addr, 4 * kPageBytes, MADV_DONTNEED}, 0),
              ElementsAre(MemoryRange{addr + 2 * kPageBytes, kPageBytes}));
  EXPECT_THAT(Changed(__NR_madvise, {addr, 4 * kPageBytes, MADV_WILLNEED}, 0),
              IsEmpty());
  munmap(at, 4 * kPageBytes);
}

TEST_F(FileMappingsTest, OfWhatHasGrownThatIsToldWhichTheFileHas) {
  void* at = mmap(reinterpret_cast<void*>(kAt), kFileBytes, PROT_READ,
                  MAP_SHARED | MAP_FIXED_NOREPLACE, fd_, 0);
  const uint64_t addr = kAt;
  ASSERT_EQ(reinterpret_cast<uint64_t>(at), addr);
  const std::array<uint64_t, 6> grows = {addr, kPageBytes, 6 * kPageBytes,
                                         MREMAP_MAYMOVE};
  const auto result = static_cast<int64_t>(addr);
  EXPECT_THAT(Changed(__NR_mremap, grows, result), IsEmpty()) << "of no file";
  MapAt(addr, kPageBytes, 0);
  EXPECT_THAT(Changed(__NR_mremap, grows, result),
              ElementsAre(MemoryRange{addr + kPageBytes, kPageBytes},
                          MemoryRange{addr + 2 * kPageBytes, kPageBytes},
                          MemoryRange{addr + 3 * kPageBytes, kPageBytes}))
      << "and nothing behind its end";
  EXPECT_THAT(Changed(__NR_mremap, grows, -ENOMEM), IsEmpty());
  munmap(at, kFileBytes);
}

TEST_F(FileMappingsTest, WhichMemoryIsMappedSharedIsTold) {
  const auto memory_of = [&](uint64_t number, std::array<uint64_t, 6> args) {
    return SharedMemoryOf(Call(number, args), kAt, memory_);
  };
  const auto mapped = [&](uint64_t flags, uint64_t of) {
    return memory_of(__NR_mmap, {0, kPageBytes, PROT_READ, flags, of, 0});
  };
  const int other = memfd_create("other", MFD_CLOEXEC);
  const int again = dup(fd_);
  const uint64_t file = mapped(MAP_SHARED, fd());
  EXPECT_NE(file, 0u);
  EXPECT_EQ(mapped(MAP_SHARED_VALIDATE, static_cast<uint64_t>(again)), file);
  EXPECT_NE(mapped(MAP_SHARED, static_cast<uint64_t>(other)), file);
  EXPECT_EQ(mapped(MAP_PRIVATE, fd()), 0u);
  EXPECT_EQ(mapped(MAP_SHARED | MAP_ANONYMOUS, ~0ull), 0u);
  EXPECT_NE(memory_of(__NR_shmat, {5, 0, 0}), memory_of(__NR_shmat, {6, 0, 0}));
  EXPECT_EQ(SharedMemoryOf(Call(__NR_shmat, {5, 0, 0}), -EINVAL, memory_), 0u);
  close(other);
  close(again);
}

// As the kernel lists them, for a process that is attached to.
TEST_F(FileMappingsTest, WhatIsMappedSharedAlreadyHasTheSameNumber) {
  const int file = memfd_create("twice", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, kFileBytes), 0);
  std::array<void*, 2> at = {};
  for (void*& addr : at) {
    addr = mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, file, kPageBytes);
  }
  const uint64_t number =
      SharedMemoryOf(Call(__NR_mmap, {0, kPageBytes, PROT_READ, MAP_SHARED,
                                      static_cast<uint64_t>(file), 0}),
                     kAt, memory_);
  const auto regions = ListRegionsOf(getpid(), 0, 0);
  ASSERT_TRUE(regions.has_value());
  uint64_t found = 0;
  for (const GuestRegion& region : *regions) {
    if (region.shared_memory == number) {
      EXPECT_EQ(region.file_offset, kPageBytes);
      found += region.size_bytes;
    }
  }
  EXPECT_EQ(found, 2 * kPageBytes);
  for (void* addr : at) {
    munmap(addr, kPageBytes);
  }
  close(file);
}

TEST_F(FileMappingsTest, OfAdviceThatFailsOrPunchesHolesEachPageIsTold) {
  void* at =
      mmap(reinterpret_cast<void*>(kAt), 2 * kPageBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  const uint64_t addr = kAt;
  ASSERT_EQ(reinterpret_cast<uint64_t>(at), addr);
  const auto both = ElementsAre(MemoryRange{addr, kPageBytes},
                                MemoryRange{addr + kPageBytes, kPageBytes});
  EXPECT_THAT(
      Changed(__NR_madvise, {addr, 3 * kPageBytes, MADV_DONTNEED}, -ENOMEM),
      both)
      << "and not the page that is not there";
  EXPECT_THAT(Changed(__NR_madvise, {addr, kPageBytes + 1, MADV_REMOVE}, 0),
              both);
  EXPECT_THAT(
      Changed(__NR_madvise, {addr + 1, kPageBytes, MADV_DONTNEED}, -EINVAL),
      IsEmpty());
  EXPECT_THAT(Changed(__NR_madvise, {addr, UINT64_MAX, MADV_DONTNEED}, -EINVAL),
              IsEmpty());
  EXPECT_THAT(
      Changed(__NR_madvise, {addr, uint64_t{1} << 46, MADV_DONTNEED}, -ENOMEM),
      IsEmpty());
  munmap(at, 2 * kPageBytes);
}

TEST_F(FileMappingsTest, WhatIsUnmappedCoveredOrMovedIsFollowed) {
  MapAt(kAt, 3 * kPageBytes, 0);
  Follow(Call(__NR_munmap, {kAt + kPageBytes, 1}), 0);
  EXPECT_THAT(Pwrite(kPageBytes - 1, kPageBytes + 2),
              ElementsAre(MemoryRange{kAt + kPageBytes - 1, 1},
                          MemoryRange{kAt + 2 * kPageBytes, 1}));
  Follow(Call(__NR_mmap, {kAt, kPageBytes, PROT_READ,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED}),
         static_cast<int64_t>(kAt));
  EXPECT_THAT(Pwrite(0, kPageBytes), IsEmpty());
  constexpr uint64_t kTo = kAt + 0x100000;
  Follow(Call(__NR_mremap, {kAt + 2 * kPageBytes, kPageBytes, 2 * kPageBytes,
                            MREMAP_MAYMOVE}),
         static_cast<int64_t>(kTo));
  EXPECT_THAT(Pwrite(2 * kPageBytes, 2 * kPageBytes),
              ElementsAre(MemoryRange{kTo, 2 * kPageBytes}));
}

TEST_F(FileMappingsTest, SharedFilesThatOthersMayWriteAreNamedOnce) {
  MapAt(kAt, kPageBytes, 0, MAP_PRIVATE, PROT_READ | PROT_WRITE);
  EXPECT_THAT(files_.Unlogged(), IsEmpty());
  MapAt(kAt, kPageBytes, 0, MAP_SHARED, PROT_READ | PROT_WRITE);
  MapAt(kAt + 0x100000, kPageBytes, 0);
  EXPECT_THAT(files_.Unlogged(), ElementsAre(HasSubstr(path_)));
}

TEST_F(FileMappingsTest, MemoryThatChildrenShareIsNamed) {
  const SyscallCall forked = Call(__NR_fork, {});
  Follow(Call(__NR_mmap, {0, kPageBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, ~0ull, 0}),
         static_cast<int64_t>(kAt));
  Follow(forked, 7);
  EXPECT_THAT(files_.Unlogged(), IsEmpty());
  Follow(Call(__NR_mmap, {0, kPageBytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, ~0ull, 0}),
         static_cast<int64_t>(kAt));
  EXPECT_THAT(files_.Unlogged(), IsEmpty());
  Follow(forked, -EAGAIN);
  EXPECT_THAT(files_.Unlogged(), IsEmpty());
  Follow(forked, 7);
  EXPECT_THAT(files_.Unlogged(),
              ElementsAre(HasSubstr("shared with child processes")));
}

// Of a process that is recorded from the middle of its life on.
TEST_F(FileMappingsTest, WhatIsMappedAtTheBeginningIsKnown) {
  files_.Begin(std::vector<GuestRegion>{{.addr = kAt,
                                         .size_bytes = 2 * kPageBytes,
                                         .prot = kProtRead,
                                         .file_offset = kPageBytes,
                                         .name = path_},
                                        {.addr = kAt + 0x100000,
                                         .size_bytes = kPageBytes,
                                         .prot = kProtRead,
                                         .name = "/etc/ld.so.cache",
                                         .shared = true},
                                        {.addr = kAt + 0x200000,
                                         .size_bytes = kPageBytes,
                                         .prot = kProtRead | kProtWrite,
                                         .name = "[heap]"}});
  EXPECT_THAT(Pwrite(kPageBytes + 5, 7), ElementsAre(MemoryRange{kAt + 5, 7}));
  EXPECT_THAT(files_.Unlogged(), IsEmpty());
}

TEST_F(FileMappingsTest, WhatOthersMayShareAtTheBeginningIsNamed) {
  files_.Begin(std::vector<GuestRegion>{{.addr = kAt,
                                         .size_bytes = kPageBytes,
                                         .prot = kProtWrite,
                                         .name = path_,
                                         .shared = true}});
  EXPECT_THAT(files_.Unlogged(), ElementsAre(HasSubstr(path_)));
  files_.Begin(std::vector<GuestRegion>{{.addr = kAt + 0x100000,
                                         .size_bytes = kPageBytes,
                                         .name = "/dev/zero (deleted)",
                                         .shared = true}});
  EXPECT_THAT(
      files_.Unlogged(),
      ElementsAre(HasSubstr(path_), HasSubstr("shared with child processes")));
}

TEST_F(FileMappingsTest, ACacheOfTheSystemThatIsReadIsNotNamed) {
  const int cache = open("/etc/ld.so.cache", O_RDONLY);
  ASSERT_GE(cache, 0);
  Follow(Call(__NR_mmap, {0, kPageBytes, PROT_READ, MAP_SHARED,
                          static_cast<uint64_t>(cache), 0}),
         static_cast<int64_t>(kAt));
  EXPECT_THAT(files_.Unlogged(), IsEmpty());
  close(cache);
}

}  // namespace
}  // namespace clew::recorder
