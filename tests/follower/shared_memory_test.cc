// Goal: memory that is mapped shared at several places is one memory, as the
// kernel has it, whatever is mapped, moved, detached and stored; and an
// observer sees what is stored at each of them. Method: oracle; random calls of
// this process in a window of pages of its own, each applied to the machine's
// memory, too; all pages compared after each.
#include "common/linux/shared_memory.h"

#include <asm/unistd_64.h>
#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <vector>

#include "common/digest.h"
#include "common/linux/syscall_table.h"
#include "common/os/fd.h"
#include "common/x86/page.h"
#include "follower/kernel/call_mappings.h"
#include "follower/kernel/call_observer.h"
#include "follower/kernel/call_writes.h"
#include "machine/cpu.h"
#include "machine/memory.h"

namespace clew::follower {
namespace {

constexpr uint64_t kWindowPages = 12;
constexpr uint64_t kFilePages = 4;
constexpr uint64_t kSegmentPages = 2;
// Behind these there is room for two segments, and for nothing else: what
// shmdt(2) takes away of one that was mapped over or moved is not followed.
constexpr uint64_t kMappedPages = kWindowPages - 2 * kSegmentPages;
constexpr int kReadWrite = PROT_READ | PROT_WRITE;

void* Pointer(uint64_t addr) { return reinterpret_cast<void*>(addr); }

// Returns how many bytes this process may read there.
uint64_t ReadHere(uint64_t addr, std::span<std::byte> to) {
  const iovec local = {.iov_base = to.data(), .iov_len = to.size()};
  const iovec remote = {.iov_base = Pointer(addr), .iov_len = to.size()};
  return static_cast<uint64_t>(std::max<ssize_t>(
      process_vm_readv(getpid(), &local, 1, &remote, 1, 0), 0));
}

uint64_t WriteHere(uint64_t addr, std::span<std::byte> from) {
  const iovec local = {.iov_base = from.data(), .iov_len = from.size()};
  const iovec remote = {.iov_base = Pointer(addr), .iov_len = from.size()};
  return static_cast<uint64_t>(std::max<ssize_t>(
      process_vm_writev(getpid(), &local, 1, &remote, 1, 0), 0));
}

bool IsMappedHere(uint64_t page) {
  unsigned char resident = 0;
  return mincore(Pointer(page), kPageBytes, &resident) == 0;
}

// This process and the machine's memory, which has to stay as it.
class Twins {
 public:
  explicit Twins(uint64_t seed)
      : random_(seed),
        file_(memfd_create("twins", MFD_CLOEXEC)),
        segment_(shmget(IPC_PRIVATE, kSegmentPages * kPageBytes, 0600)) {
    struct stat info = {};
    EXPECT_EQ(ftruncate(file_.get(), kFilePages * kPageBytes), 0);
    EXPECT_EQ(fstat(file_.get(), &info), 0);
    EXPECT_GE(segment_, 0);
    file_number_ = SharedMemoryNumber(info.st_dev, info.st_ino);
    void* const window =
        mmap(nullptr, kWindowPages * kPageBytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(window, MAP_FAILED);
    window_ = reinterpret_cast<uint64_t>(window);
    memory_.Map(window_, kWindowPages * kPageBytes, 0);
  }
  ~Twins() {
    munmap(Pointer(window_), kWindowPages * kPageBytes);
    shmctl(segment_, IPC_RMID, nullptr);
  }
  Twins(const Twins&) = delete;
  Twins& operator=(const Twins&) = delete;

  void Step() {
    const uint64_t pages = 1 + random_.Below(3);
    const uint64_t at = Page(pages);
    switch (random_.Below(10)) {
      case 0: {
        const uint64_t first = random_.Below(kFilePages - pages + 1);
        return Make(__NR_mmap,
                    {at, pages * kPageBytes, kReadWrite, MAP_SHARED | MAP_FIXED,
                     static_cast<uint64_t>(file_.get()), first * kPageBytes},
                    file_number_);
      }
      case 1:
        return Make(__NR_mmap,
                    {at, pages * kPageBytes, kReadWrite,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, ~0ull},
                    0);
      case 2:
        return Remap(pages);
      case 3:
        return Make(__NR_madvise, {at, pages * kPageBytes, MADV_DONTNEED}, 0);
      case 4:
        return Make(
            __NR_shmat,
            {static_cast<uint64_t>(segment_), PlaceOfSegment(), SHM_REMAP},
            SharedMemoryNumber(kMemoryDevice, static_cast<uint64_t>(segment_)));
      case 5:
        return Make(__NR_shmdt, {PlaceOfSegment()}, 0);
      case 6:
        return Hide(at, pages);
      case 7:
        return WriteFile();
      default:
        return Store();
    }
  }

  void ExpectEqual() {
    for (uint64_t page = window_; page < window_ + kWindowPages * kPageBytes;
         page += kPageBytes) {
      std::vector<std::byte> here(kPageBytes);
      std::vector<std::byte> there(kPageBytes);
      if (ReadHere(page, here) == kPageBytes) {
        ASSERT_TRUE(memory_.Peek(page, there)) << Index(page);
        ASSERT_TRUE(here == there) << Index(page);
        mirrored_ += memory_.HasMirror(page, kPageBytes) ? 1 : 0;
      }
    }
  }
  // Pages that were compared and are mapped elsewhere, too.
  uint64_t mirrored() const { return mirrored_; }

 private:
  uint64_t Index(uint64_t page) const { return (page - window_) / kPageBytes; }
  uint64_t Page(uint64_t pages) {
    return window_ + random_.Below(kMappedPages - pages + 1) * kPageBytes;
  }
  uint64_t PlaceOfSegment() {
    return window_ +
           (kMappedPages + random_.Below(2) * kSegmentPages) * kPageBytes;
  }

  void Remap(uint64_t new_pages) {
    const uint64_t old_pages = random_.Below(4);
    const uint64_t from = Page(old_pages);
    const uint64_t to = Page(new_pages);
    Make(__NR_mremap,
         {from, old_pages * kPageBytes, new_pages * kPageBytes,
          MREMAP_MAYMOVE | MREMAP_FIXED, to},
         0);
  }

  void Hide(uint64_t at, uint64_t pages) {
    Make(__NR_mmap,
         {at, pages * kPageBytes, PROT_NONE,
          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, ~0ull},
         0);
  }

  // Wherever the file is mapped then.
  void WriteFile() {
    alignas(kPageBytes) static std::array<std::byte, kPageBytes> buffer;
    const auto addr = reinterpret_cast<uint64_t>(buffer.data());
    const uint64_t bytes = 1 + random_.Below(kPageBytes);
    for (std::byte& byte : std::span(buffer).first(bytes)) {
      byte = static_cast<std::byte>(random_.Next());
    }
    memory_.Map(addr, kPageBytes, kReadWrite);
    EXPECT_TRUE(memory_.Poke(addr, buffer));
    SyscallInput call;
    call.number = __NR_pwrite64;
    call.args = {static_cast<uint64_t>(file_.get()), addr, bytes,
                 random_.Below(kFilePages * kPageBytes - bytes)};
    call.result = pwrite(file_.get(), buffer.data(), bytes,
                         static_cast<off_t>(call.args[3]));
    call.output_bytes = bytes;
    call.shared_memory = file_number_;
    call.written_offset = call.args[3];
    Apply(call);
  }

  void Store() {
    std::vector<std::byte> bytes(1 + random_.Below(64));
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(random_.Next());
    }
    // Often over the end of a page.
    const uint64_t page = window_ + random_.Below(kWindowPages) * kPageBytes;
    const uint64_t addr =
        std::min(page + kPageBytes - random_.Below(bytes.size() + 40),
                 window_ + kWindowPages * kPageBytes - bytes.size());
    const uint64_t done = WriteHere(addr, bytes);
    if (done != 0) {
      EXPECT_TRUE(
          memory_.Store(addr, std::as_bytes(std::span(bytes).first(done))));
    }
  }

  void Make(uint64_t number, const std::array<uint64_t, 6>& args,
            uint64_t shared_memory) {
    SCOPED_TRACE(SyscallName(number));
    SyscallInput call;
    call.number = number;
    call.args = args;
    call.shared_memory = shared_memory;
    call.entered_tsc = TscTicks(++calls_);
    const long result = syscall(static_cast<long>(number), args[0], args[1],
                                args[2], args[3], args[4], args[5]);
    if (result == -1) {
      // One that fails may have unmapped what was where it was to move to.
      return number == __NR_mremap ? Hide(args[4], args[2] / kPageBytes)
                                   : void();
    }
    call.result = result;
    TellContents(call);
    Apply(call);
    FillHoles();
  }

  void Apply(const SyscallInput& call) {
    ApplyMappings(call, memory_, brk_);
    std::vector<MemoryWrite> room;
    for (const MemoryWrite& write : WritesOf(call, memory_, room)) {
      EXPECT_TRUE(memory_.Poke(write.addr.as_int(), write.bytes));
    }
  }

  // As a recorder does: of what is mapped, what it is; of a file, what it was
  // before others stored there, which counts for nothing.
  void TellContents(SyscallInput& call) {
    auto addr = static_cast<uint64_t>(*call.result);
    uint64_t bytes = 0;
    if (call.number == __NR_mmap) {
      bytes = call.args[1];
    } else if (call.number == __NR_shmat) {
      bytes = kSegmentPages * kPageBytes;
    } else if (call.number == __NR_mremap && call.args[2] > call.args[1]) {
      addr += call.args[1];
      bytes = call.args[2] - call.args[1];
    }
    std::vector<std::byte> contents(bytes);
    contents.resize(ReadHere(addr, contents));
    if (!contents.empty()) {
      call.writes.push_back({TraceeAddr(addr), contents});
    }
  }

  // What is not mapped could be taken by others.
  void FillHoles() {
    for (uint64_t page = window_; page < window_ + kWindowPages * kPageBytes;
         page += kPageBytes) {
      ASSERT_EQ(IsMappedHere(page), memory_.ProtectionAt(page).has_value())
          << Index(page);
      if (!IsMappedHere(page)) {
        Hide(page, 1);
      }
    }
  }

  Random random_;
  Fd file_;
  int segment_;
  uint64_t file_number_ = 0;
  uint64_t window_ = 0;
  uint64_t calls_ = 0;
  uint64_t brk_ = 0;
  uint64_t mirrored_ = 0;
  machine::Memory memory_;
};

TEST(SharedMemoryTest, IsTheKernels) {
  uint64_t mirrored = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Twins twins(seed);
    for (int i = 0; i < 100 && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(i);
      twins.Step();
      twins.ExpectEqual();
    }
    mirrored += twins.mirrored();
  }
  EXPECT_GT(mirrored, 5000u);
}

// What was stored since is not undone by what a file had when a mapping of it
// was told.
TEST(SharedMemoryTest, WhatIsMappedElsewhereIsNotWrittenByItsMapping) {
  constexpr uint64_t kOnePlace = 0x10000;
  constexpr uint64_t kOtherPlace = 0x40000;
  machine::Memory memory;
  uint64_t brk = 0;
  SyscallInput call;
  call.number = __NR_mmap;
  call.args = {0, kPageBytes, kReadWrite, MAP_SHARED, 3, kPageBytes};
  call.result = kOnePlace;
  call.shared_memory = 77;
  ApplyMappings(call, memory, brk);
  ASSERT_TRUE(memory.Store(kOnePlace + 8, uint64_t{5}));
  // Two pages, of which the second is the one.
  call.args[1] = 2 * kPageBytes;
  call.args[5] = 0;
  call.result = kOtherPlace;
  call.writes = {{.addr = TraceeAddr(kOtherPlace),
                  .bytes = std::vector(2 * kPageBytes, std::byte{9})}};
  ApplyMappings(call, memory, brk);
  std::vector<MemoryWrite> room;
  uint64_t bytes = 0;
  for (const MemoryWrite& write : WritesOf(call, memory, room)) {
    EXPECT_EQ(write.addr, TraceeAddr(kOtherPlace));
    bytes += write.bytes.size();
  }
  EXPECT_EQ(bytes, kPageBytes);
  uint64_t value = 0;
  EXPECT_TRUE(memory.Load(kOtherPlace + kPageBytes + 8, value));
  EXPECT_EQ(value, 5u);
}

class Places final : public machine::AccessObserver {
 public:
  bool OnAccess(const machine::ObservedAccess& access) override {
    places.push_back({access.addr, access.size_bytes});
    return false;
  }
  std::vector<MemoryRange> places;
};

// A write over the end of a page that is mapped twice in a row.
TEST(SharedMemoryTest, WhatTheKernelWritesIsObservedAtEachPlace) {
  constexpr uint64_t kRing = 0x10000;
  machine::Memory memory;
  memory.MapShared(kRing, kPageBytes, kReadWrite, 1);
  memory.MapShared(kRing + kPageBytes, kPageBytes, kReadWrite, 1);
  const MemoryWrite write = {.addr = TraceeAddr(kRing + kPageBytes - 2),
                             .bytes = std::vector(5, std::byte{1})};
  Places observer;
  ObserveWrites(observer, memory, 0, std::span(&write, 1));
  const std::vector<MemoryRange> expected = {
      {kRing + kPageBytes - 2, 5},
      {kRing + 2 * kPageBytes - 2, 2},
      {kRing, 3},
  };
  EXPECT_EQ(observer.places, expected);
}

}  // namespace
}  // namespace clew::follower
