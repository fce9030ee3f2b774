// Goal: the table says which memory the kernel reads, to the byte, and the
// digest covers all of it.
// Method: calls whose buffer ends where memory ends: one that the kernel takes,
// and the same without the last byte, which is EFAULT. Oracle: the kernel. What
// depends on contents (texts, vectors, messages) is laid out in memory.
#include "common/linux/syscall_reads.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <numeric>
#include <set>

namespace clew {
namespace {

constexpr size_t kBytes = 2 * 4096;
using Args = std::array<uint64_t, 6>;
using testing::ElementsAre;
using testing::IsEmpty;

uint64_t AddressOf(const void* at) { return reinterpret_cast<uint64_t>(at); }

// Memory of this process, of which the last bytes are followed by a page that
// nobody may touch.
class SyscallReadsTest : public testing::Test, public ProgramMemory {
 protected:
  void SetUp() override {
    begin_ = static_cast<std::byte*>(mmap(nullptr, kBytes + 4096,
                                          PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(begin_, MAP_FAILED);
    ASSERT_EQ(mprotect(begin_ + kBytes, 4096, PROT_NONE), 0);
  }
  void TearDown() override { munmap(begin_, kBytes + 4096); }
  bool Read(uint64_t addr, std::span<std::byte> to) const override {
    const uint64_t begin = AddressOf(begin_);
    if (addr < begin || addr > begin + kBytes ||
        to.size() > begin + kBytes - addr) {
      return false;
    }
    std::memcpy(to.data(), begin_ + (addr - begin), to.size());
    return true;
  }
  // The address `before_end` bytes before the end.
  uint64_t FromEnd(size_t before_end) const {
    return AddressOf(begin_ + kBytes - before_end);
  }
  template <class T>
  uint64_t Put(size_t before_end, const T& value) {
    std::memcpy(begin_ + kBytes - before_end, &value, sizeof(value));
    return FromEnd(before_end);
  }
  std::vector<MemoryRange> ReadsOf(uint64_t number, const Args& args) const {
    return ReadsOfSyscall(number, args, *this);
  }
  std::byte* begin_ = nullptr;
};

int ErrnoOf(uint64_t number, const Args& a) {
  const long result =
      syscall(static_cast<long>(number), a[0], a[1], a[2], a[3], a[4], a[5]);
  return result < 0 ? errno : 0;
}

struct Call {
  const char* name;
  uint64_t number;
  size_t pointer;  // the argument that the test fills in
  Args args;
};

constexpr uint64_t kNone = ~uint64_t{0};       // no descriptor
constexpr uint64_t kZeros = ~uint64_t{0} - 1;  // the address of some

// Harmless with zeros to read.
constexpr Call kCalls[] = {
    {"nanosleep", SYS_nanosleep, 0, {}},
    {"clock_nanosleep", SYS_clock_nanosleep, 2, {}},
    {"rt_sigaction", SYS_rt_sigaction, 1, {SIGUSR2, 0, 0, 8}},
    {"rt_sigprocmask", SYS_rt_sigprocmask, 1, {0, 0, 0, 8}},
    {"rt_sigtimedwait", SYS_rt_sigtimedwait, 0, {0, 0, kZeros, 8}},
    {"setitimer", SYS_setitimer, 1, {}},
    {"poll", SYS_poll, 0, {0, 3, 0}},
    {"ppoll", SYS_ppoll, 2, {}},
    {"select", SYS_select, 1, {65, 0, 0, 0, kZeros}},
    {"pselect6", SYS_pselect6, 4, {}},
    {"sched_setaffinity", SYS_sched_setaffinity, 2, {kNone, 8}},
    {"sigaltstack", SYS_sigaltstack, 0, {}},
    {"timerfd_settime", SYS_timerfd_settime, 2, {kNone}},
    {"futex", SYS_futex, 3, {kZeros, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1}},
    {"epoll_ctl", SYS_epoll_ctl, 3, {kNone, EPOLL_CTL_ADD, 0}},
    {"mq_timedsend", SYS_mq_timedsend, 4, {kNone}},
    {"prlimit64", SYS_prlimit64, 2, {0, 99}},
    {"semop", SYS_semop, 1, {kNone, 0, 3}},
    {"utimensat", SYS_utimensat, 2, {kNone}},
};

// Grows this process's table of descriptors. Of the sets of select, the kernel
// reads no more bits than the table has places (fs/select.c, core_sys_select),
// and a new process begins with 64.
void HavePlacesForDescriptors(int count) {
  const int highest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, count - 1);
  ASSERT_GE(highest, count - 1);
  close(highest);
}

// Where the kernel looks at other arguments first, it does not come to read;
// then both answers are the same, and not EFAULT.
TEST_F(SyscallReadsTest, TheKernelReadsAsMuchAndNoMore) {
  HavePlacesForDescriptors(128);
  std::set<std::string> confirmed;
  for (Call call : kCalls) {
    SCOPED_TRACE(call.name);
    std::ranges::replace(call.args, kZeros, FromEnd(kBytes));
    const uint64_t middle = FromEnd(kBytes / 2);
    call.args[call.pointer] = middle;
    const auto reads = ReadsOf(call.number, call.args);
    const auto read = std::ranges::find(reads, middle, &MemoryRange::addr);
    ASSERT_NE(read, reads.end());
    call.args[call.pointer] = FromEnd(read->size_bytes);
    EXPECT_NE(ErrnoOf(call.number, call.args), EFAULT);
    call.args[call.pointer] = FromEnd(read->size_bytes - 1);
    if (ErrnoOf(call.number, call.args) == EFAULT) {
      confirmed.insert(call.name);
    }
  }
  EXPECT_THAT(
      confirmed,
      testing::IsSupersetOf(
          {"nanosleep", "clock_nanosleep", "rt_sigaction", "rt_sigprocmask",
           "rt_sigtimedwait", "setitimer", "poll", "ppoll", "select",
           "pselect6", "sigaltstack", "futex", "epoll_ctl", "prlimit64"}));
}

TEST_F(SyscallReadsTest, ATextReachesToItsNul) {
  const char text[] = "/some/path";
  EXPECT_THAT(ReadsOf(SYS_open, {Put(sizeof(text), text)}),
              ElementsAre(MemoryRange{FromEnd(sizeof(text)), sizeof(text)}));
  // Across a page, in pieces, and to the end of what is mapped.
  std::memset(begin_, 'x', kBytes);
  EXPECT_THAT(ReadsOf(SYS_openat, {0, FromEnd(4096 + 300)}),
              ElementsAre(MemoryRange{FromEnd(4396), 4096}));
  EXPECT_THAT(ReadsOf(SYS_openat, {0, FromEnd(300)}),
              ElementsAre(MemoryRange{FromEnd(300), 300}));
  *(begin_ + kBytes - 5) = {};
  EXPECT_THAT(
      ReadsOf(SYS_renameat2, {0, FromEnd(300), 0, FromEnd(9)}),
      ElementsAre(MemoryRange{FromEnd(300), 296}, MemoryRange{FromEnd(9), 5}));
}

TEST_F(SyscallReadsTest, BuffersAreReadWhereTheyLie) {
  EXPECT_THAT(ReadsOf(SYS_write, {1, FromEnd(9), 9}),
              ElementsAre(MemoryRange{FromEnd(9), 9}));
  EXPECT_THAT(ReadsOf(SYS_write, {1, FromEnd(9), 0}), IsEmpty());
  EXPECT_THAT(ReadsOf(SYS_read, {1, FromEnd(9), 9}), IsEmpty());
  // Half of the registers counts.
  constexpr uint64_t kHigh = uint64_t{7} << 32;
  EXPECT_THAT(
      ReadsOf(SYS_sendto, {1, FromEnd(9), 9, 0, FromEnd(16), kHigh | 16}),
      ElementsAre(MemoryRange{FromEnd(9), 9}, MemoryRange{FromEnd(16), 16}));
}

TEST_F(SyscallReadsTest, VectorsAndMessagesBringWhatTheyPointTo) {
  const std::array<uint64_t, 4> parts = {FromEnd(10), 4, FromEnd(6), 2};
  const uint64_t vector = Put(64, parts);
  const MemoryRange array{vector, 32};
  const MemoryRange first{FromEnd(10), 4};
  const MemoryRange second{FromEnd(6), 2};
  EXPECT_THAT(ReadsOf(SYS_writev, {1, vector, 2}),
              ElementsAre(array, first, second));
  EXPECT_THAT(ReadsOf(SYS_readv, {1, vector, 2}), ElementsAre(array));
  const std::array<uint64_t, 7> header = {FromEnd(3), 3, vector, 2,
                                          FromEnd(9), 8, 0};
  const uint64_t message = Put(256, header);
  const MemoryRange head{message, 56};
  EXPECT_THAT(
      ReadsOf(SYS_sendmsg, {1, message}),
      ElementsAre(head, array, first, second, MemoryRange{FromEnd(3), 3},
                  MemoryRange{FromEnd(9), 8}));
  EXPECT_THAT(ReadsOf(SYS_recvmsg, {1, message}), ElementsAre(head, array));
  EXPECT_EQ(ReadsOf(SYS_sendmmsg, {1, message, 1}).size(), 6u);
}

TEST_F(SyscallReadsTest, OtherArgumentsDecide) {
  const uint64_t at = FromEnd(64);
  EXPECT_THAT(ReadsOf(SYS_futex, {at, FUTEX_WAKE, 1, at}), IsEmpty());
  EXPECT_EQ(ReadsOf(SYS_futex, {at, FUTEX_WAIT_BITSET, 1, at}).size(), 1u);
  EXPECT_THAT(ReadsOf(SYS_epoll_ctl, {1, EPOLL_CTL_DEL, 2, at}), IsEmpty());
  EXPECT_THAT(ReadsOf(SYS_accept, {1, 0, at}), IsEmpty());
  EXPECT_EQ(ReadsOf(SYS_accept, {1, at, at}).size(), 1u);
  EXPECT_THAT(ReadsOf(SYS_nanosleep, {0}), IsEmpty());
}

TEST_F(SyscallReadsTest, ThereIsALimit) {
  const auto reads = ReadsOf(SYS_write, {1, FromEnd(9), uint64_t{1} << 40});
  EXPECT_THAT(reads, ElementsAre(MemoryRange{FromEnd(9), 64u << 20}));
}

TEST_F(SyscallReadsTest, TheDigestCoversEveryByte) {
  std::iota(reinterpret_cast<uint8_t*>(begin_),
            reinterpret_cast<uint8_t*>(begin_) + kBytes, uint8_t{0});
  const std::array<MemoryRange, 2> ranges = {
      MemoryRange{FromEnd(kBytes - 3), 4099}, MemoryRange{FromEnd(13), 13}};
  std::set<uint64_t> digests = {*DigestOfReads(ranges, *this)};
  size_t bytes = 0;
  for (const MemoryRange& range : ranges) {
    for (uint64_t i = 0; i < range.size_bytes; ++i, ++bytes) {
      auto* const byte = begin_ + (range.addr - AddressOf(begin_) + i);
      *byte ^= std::byte{0x80};
      digests.insert(*DigestOfReads(ranges, *this));
      *byte ^= std::byte{0x80};
    }
  }
  EXPECT_EQ(digests.size(), bytes + 1);
  // The same bytes, cut otherwise.
  const std::array<MemoryRange, 2> halves = {MemoryRange{FromEnd(16), 8},
                                             MemoryRange{FromEnd(8), 8}};
  const std::array<MemoryRange, 1> whole = {MemoryRange{FromEnd(16), 16}};
  EXPECT_NE(DigestOfReads(halves, *this), DigestOfReads(whole, *this));
}

TEST_F(SyscallReadsTest, WhatIsNotReadableHasNoDigest) {
  const std::array<MemoryRange, 1> beyond = {MemoryRange{FromEnd(8), 9}};
  EXPECT_EQ(DigestOfReads(beyond, *this), std::nullopt);
  EXPECT_EQ(DigestOfReads({}, *this), std::nullopt);
}

// The example of docs/format/bundle.md.
TEST_F(SyscallReadsTest, DigestsAreThoseOfTheFormatPage) {
  const char text[13] = {'E', 'X', 'I', 'T', '-', 'S', 'U',
                         'C', 'C', 'E', 'S', 'S', '\n'};
  const std::array<MemoryRange, 1> ranges = {MemoryRange{Put(13, text), 13}};
  EXPECT_EQ(DigestOfReads(ranges, *this), 0x86c6747a59232835u);
}

}  // namespace
}  // namespace clew
