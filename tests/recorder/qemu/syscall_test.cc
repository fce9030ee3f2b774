// Goal: the system call table is ordered and names what it refuses; effects
// cover exactly what the kernel wrote, for every kind of row.
// Method: calls made for real by this process; GuestMemory reads only low
// addresses, so buffers are mapped there.
#include <asm/unistd_64.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/linux/request_table.h"
#include "common/linux/syscall_table.h"
#include "recorder/qemu/calls/futex_model.h"
#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/reservation.h"

namespace clew::recorder {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SyscallTest : public testing::Test {
 protected:
  static void* At(uint64_t addr) { return reinterpret_cast<void*>(addr); }
  void SetUp() override {
    void* page = mmap(At(kBuffer), kPageBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_EQ(page, At(kBuffer)) << strerror(errno);
  }
  void TearDown() override { munmap(At(kBuffer), kPageBytes); }
  std::vector<MemoryRange> Writes(uint64_t number, std::array<uint64_t, 6> args,
                                  int64_t result) {
    const auto call = BeginSyscall(number, args, memory_);
    EXPECT_TRUE(call.has_value()) << number;
    const auto effects = EffectsOf(*call, result, memory_);
    EXPECT_TRUE(effects.has_value()) << number;
    return effects->writes;
  }
  static void Store(uint64_t addr, uint64_t value) {
    std::memcpy(At(addr), &value, sizeof(value));
  }

  static constexpr uint64_t kBuffer = 0x10000000;
  GuestMemory memory_ = *GuestMemory::Open();
};

// The rows that QEMU's recorder takes: their writes are ranges at their
// arguments, for any result.
TEST_F(SyscallTest, EveryRowThatIsNotRefusedBegins) {
  int begun = 0;
  for (const SyscallRow& row : AllSyscalls()) {
    const auto call = BeginSyscall(row.number, {}, memory_);
    EXPECT_EQ(call.has_value(), row.effects != KnownEffects::kNone) << row.name;
    if (call) {
      ++begun;
      EXPECT_TRUE(EffectsOf(*call, -ENOSYS, memory_)) << row.name;
    }
  }
  EXPECT_GT(begun, 200);
}

TEST_F(SyscallTest, RefusalsNameTheCall) {
  const auto call = BeginSyscall(__NR_mount, {}, memory_);
  ASSERT_FALSE(call.has_value());
  EXPECT_EQ(call.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(call.error().message, HasSubstr("mount"));
  EXPECT_THAT(call.error().message, HasSubstr("does without"));
}

TEST_F(SyscallTest, ANumberThatTheKernelDoesNotHaveMayOnlyFail) {
  for (const uint64_t number :
       {uint64_t{400}, uint64_t{999}, uint64_t{SyscallNumber(UINT64_MAX)},
        uint64_t{SyscallNumber(uint64_t{0} - 10)}}) {
    const auto call = BeginSyscall(number, {}, memory_);
    ASSERT_TRUE(call.has_value()) << number;
    EXPECT_FALSE(MayBlock(*call, memory_)) << number;
    EXPECT_THAT(EffectsOf(*call, -ENOSYS, memory_)->writes, IsEmpty());
    EXPECT_FALSE(EffectsOf(*call, 0, memory_)) << number;
  }
}

TEST_F(SyscallTest, AWaitForALockWithInheritanceIsRefusedByName) {
  for (const uint64_t command : {FUTEX_LOCK_PI, FUTEX_LOCK_PI_PRIVATE}) {
    const auto call = BeginSyscall(__NR_futex, {kBuffer, command}, memory_);
    ASSERT_FALSE(call.has_value());
    EXPECT_THAT(call.error().message, HasSubstr("FUTEX_LOCK_PI (6)"));
  }
}

TEST_F(SyscallTest, ALockWithInheritanceIsGivenUpOrTriedWithoutWaiting) {
  for (const uint64_t command : {FUTEX_UNLOCK_PI, FUTEX_TRYLOCK_PI}) {
    const auto call = BeginSyscall(__NR_futex, {kBuffer, command}, memory_);
    ASSERT_TRUE(call.has_value());
    EXPECT_FALSE(MayBlock(*call, memory_));
    EXPECT_THAT(EffectsOf(*call, 0, memory_)->writes,
                ElementsAre(MemoryRange{kBuffer, 4}));
    EXPECT_THAT(EffectsOf(*call, -EPERM, memory_)->writes, IsEmpty());
  }
}

TEST_F(SyscallTest, ATableOfDescriptorsOfAThreadsOwnIsRefused) {
  EXPECT_TRUE(BeginSyscall(__NR_unshare, {CLONE_FS}, memory_));
  const auto call = BeginSyscall(__NR_unshare, {CLONE_FILES}, memory_);
  ASSERT_FALSE(call.has_value());
  EXPECT_THAT(call.error().message, HasSubstr("unshare with flags 0x400"));
}

TEST_F(SyscallTest, ALimitOfTheRecordingsOwnFilesIsRefused) {
  const auto set = [&](uint64_t limit, uint64_t resource) {
    Store(kBuffer, limit);
    const auto own = BeginSyscall(__NR_setrlimit, {resource, kBuffer}, memory_);
    const auto of_process =
        BeginSyscall(__NR_prlimit64, {0, resource, kBuffer}, memory_);
    EXPECT_EQ(own.has_value(), of_process.has_value());
    return own;
  };
  EXPECT_TRUE(set(RLIM_INFINITY, RLIMIT_FSIZE));
  EXPECT_TRUE(set(10, RLIMIT_NOFILE));
  EXPECT_TRUE(BeginSyscall(__NR_prlimit64, {0, RLIMIT_FSIZE, 0}, memory_));
  const auto refused = set(10, RLIMIT_FSIZE);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("setrlimit(RLIMIT_FSIZE)"));
}

// QEMU 7.2 does not have them, and programs go on without.
TEST_F(SyscallTest, CallsThatMayFailAreRefusedWhereTheyDoNot) {
  for (const uint64_t number :
       {uint64_t{__NR_execveat}, uint64_t{__NR_io_uring_setup}, uint64_t{444},
        uint64_t{449}, uint64_t{999}, ~uint64_t{0}, ~uint64_t{9}}) {
    const auto call = BeginSyscall(number, {}, memory_);
    ASSERT_TRUE(call.has_value()) << number;
    EXPECT_TRUE(EffectsOf(*call, -ENOSYS, memory_)) << number;
    const auto succeeded = EffectsOf(*call, 0, memory_);
    ASSERT_FALSE(succeeded) << number;
    EXPECT_THAT(succeeded.error().message, HasSubstr(SyscallName(number)));
  }
}

TEST_F(SyscallTest, AReceiverOfAllWaitsThoughThereIsSomethingToRead) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const auto fd = static_cast<uint64_t>(ends[0]);
  const auto may_block = [&](uint64_t flags) {
    const auto from =
        BeginSyscall(__NR_recvfrom, {fd, kBuffer, 8, flags, 0, 0}, memory_);
    const auto message =
        BeginSyscall(__NR_recvmsg, {fd, kBuffer, flags}, memory_);
    EXPECT_EQ(MayBlock(*from, memory_), MayBlock(*message, memory_));
    return MayBlock(*from, memory_);
  };
  EXPECT_TRUE(may_block(0));
  ASSERT_EQ(write(ends[1], "hello", 5), 5);
  EXPECT_FALSE(may_block(0));
  EXPECT_TRUE(may_block(MSG_WAITALL));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(SyscallTest, SemaphoresWaitWhereTheirValueSaysSo) {
  const int id = semget(IPC_PRIVATE, 3, 0600);
  ASSERT_GE(id, 0) << strerror(errno);
  const auto set = static_cast<uint64_t>(id);
  const auto may_block = [&](sembuf operation, uint64_t count = 1) {
    std::memcpy(At(kBuffer), &operation, sizeof operation);
    const auto call = BeginSyscall(__NR_semop, {set, kBuffer, count}, memory_);
    return MayBlock(*call, memory_);
  };
  EXPECT_EQ(semctl(id, 1, SETVAL, 2), 0);
  EXPECT_FALSE(may_block({1, -2, 0}));
  EXPECT_TRUE(may_block({1, -3, 0}));
  EXPECT_FALSE(may_block({1, -3, IPC_NOWAIT}));
  EXPECT_TRUE(may_block({1, 0, 0})) << "until it is 0";
  EXPECT_FALSE(may_block({0, 0, 0}));
  EXPECT_FALSE(may_block({0, 1, 0}));
  EXPECT_TRUE(may_block({0, 1, 0}, 2)) << "not known of several";
  EXPECT_FALSE(may_block({9, -1, 0})) << "no such one: it fails";
  EXPECT_THAT(Writes(__NR_semctl, {set, 0, GETALL, kBuffer}, 0),
              ElementsAre(MemoryRange{kBuffer, 6}));
  EXPECT_THAT(Writes(__NR_semctl, {set, 0, IPC_STAT, kBuffer}, 0),
              ElementsAre(MemoryRange{kBuffer, 104}));
  EXPECT_THAT(Writes(__NR_semctl, {set, 0, GETVAL, kBuffer}, 2), IsEmpty());
  EXPECT_EQ(semctl(id, 0, IPC_RMID), 0);
}

TEST_F(SyscallTest, QueuesWaitWhereTheyAreEmptyOrFull) {
  const int id = msgget(IPC_PRIVATE, 0600);
  ASSERT_GE(id, 0) << strerror(errno);
  const auto queue = static_cast<uint64_t>(id);
  const auto may_block = [&](uint64_t number, std::array<uint64_t, 6> args) {
    return MayBlock(*BeginSyscall(number, args, memory_), memory_);
  };
  const auto may_receive_block = [&](uint64_t type, uint64_t flags = 0) {
    return may_block(__NR_msgrcv, {queue, kBuffer, 8, type, flags});
  };
  EXPECT_TRUE(may_receive_block(0));
  EXPECT_FALSE(may_receive_block(0, IPC_NOWAIT));
  Store(kBuffer, 3);
  EXPECT_EQ(msgsnd(id, At(kBuffer), 8, 0), 0);
  EXPECT_FALSE(may_receive_block(0));
  EXPECT_TRUE(may_receive_block(4)) << "not known of one type";
  EXPECT_FALSE(may_block(__NR_msgsnd, {queue, kBuffer, 8, 0}));
  EXPECT_TRUE(may_block(__NR_msgsnd, {queue, kBuffer, 1 << 30, 0}));
  EXPECT_THAT(Writes(__NR_msgrcv, {queue, kBuffer, 8, 0, 0}, 8),
              ElementsAre(MemoryRange{kBuffer, 16}));
  EXPECT_THAT(Writes(__NR_msgctl, {queue, IPC_STAT, kBuffer}, 0),
              ElementsAre(MemoryRange{kBuffer, 120}));
  EXPECT_THAT(Writes(__NR_msgctl, {queue, IPC_RMID, 0}, 0), IsEmpty());
  EXPECT_EQ(msgctl(id, IPC_RMID, nullptr), 0);
}

TEST_F(SyscallTest, TheStateOfASharedSegmentIsWritten) {
  const int id = shmget(IPC_PRIVATE, 12345, 0600);
  ASSERT_GE(id, 0) << strerror(errno);
  const auto segment = static_cast<uint64_t>(id);
  std::memset(At(kBuffer), 0x5a, kPageBytes);
  ASSERT_EQ(shmctl(id, IPC_STAT, static_cast<shmid_ds*>(At(kBuffer))), 0);
  EXPECT_THAT(Writes(__NR_shmctl, {segment, IPC_STAT, kBuffer}, 0),
              ElementsAre(MemoryRange{kBuffer, 112}));
  EXPECT_EQ(memory_.Load<uint64_t>(kBuffer + 112), 0x5a5a5a5a5a5a5a5a);
  EXPECT_NE(memory_.Load<uint64_t>(kBuffer + 104), 0x5a5a5a5a5a5a5a5a);
  EXPECT_THAT(Writes(__NR_shmctl, {0, IPC_INFO, kBuffer}, 0),
              ElementsAre(MemoryRange{kBuffer, 72}));
  EXPECT_THAT(Writes(__NR_shmctl, {0, SHM_INFO, kBuffer}, 0),
              ElementsAre(MemoryRange{kBuffer, 48}));
  EXPECT_THAT(Writes(__NR_shmctl, {segment, IPC_RMID, 0}, 0), IsEmpty());
  EXPECT_EQ(shmctl(id, IPC_RMID, nullptr), 0);
}

TEST_F(SyscallTest, AMessageOfAPosixQueueHasAPriority) {
  EXPECT_THAT(
      Writes(__NR_mq_timedreceive, {5, kBuffer, 16, kBuffer + 100, 0}, 4),
      ElementsAre(MemoryRange{kBuffer, 4}, MemoryRange{kBuffer + 100, 4}));
}

TEST_F(SyscallTest, ChildProcessesHaveMemoryOfTheirOwn) {
  constexpr uint64_t kTid = CLONE_PARENT_SETTID | CLONE_CHILD_SETTID;
  EXPECT_THAT(Writes(__NR_clone, {kTid | SIGCHLD, 0, kBuffer, kBuffer + 8}, 7),
              IsEmpty());
  EXPECT_THAT(Writes(__NR_clone,
                     {kTid | CLONE_VM | CLONE_VFORK | SIGCHLD, 0, kBuffer}, 7),
              IsEmpty());
  EXPECT_THAT(
      Writes(__NR_clone,
             {kTid | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, 0, kBuffer,
              kBuffer + 8},
             7),
      ElementsAre(MemoryRange{kBuffer, 4}, MemoryRange{kBuffer + 8, 4}));
  const auto shared = BeginSyscall(__NR_clone, {CLONE_VM | SIGCHLD}, memory_);
  ASSERT_FALSE(shared.has_value());
  EXPECT_EQ(shared.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(shared.error().message, HasSubstr("shares its parent's memory"));
}

TEST_F(SyscallTest, ReadWritesItsResultAndNothingOnError) {
  EXPECT_THAT(Writes(__NR_read, {0, kBuffer, 100}, 7),
              ElementsAre(MemoryRange{kBuffer, 7}));
  EXPECT_THAT(Writes(__NR_read, {0, kBuffer, 100}, -EIO), IsEmpty());
  EXPECT_THAT(Writes(__NR_read, {0, kBuffer, 100}, 0), IsEmpty());
}

// A datagram longer than the buffer (MSG_TRUNC), lists asked for their length.
TEST_F(SyscallTest, NoMoreIsWrittenThanTheBufferTakes) {
  EXPECT_THAT(Writes(__NR_recvfrom, {3, kBuffer, 10, MSG_TRUNC}, 500),
              ElementsAre(MemoryRange{kBuffer, 10}));
  EXPECT_THAT(Writes(__NR_getxattr, {0, 0, kBuffer, 0}, 40), IsEmpty());
  EXPECT_THAT(Writes(__NR_getgroups, {0, kBuffer}, 3), IsEmpty());
  EXPECT_THAT(Writes(__NR_getgroups, {8, kBuffer}, 3),
              ElementsAre(MemoryRange{kBuffer, 12}));
  EXPECT_THAT(Writes(__NR_epoll_wait, {3, kBuffer, 8, 0}, 2),
              ElementsAre(MemoryRange{kBuffer, 24}));
}

// The kernel looks at 32 bits of a number of descriptors.
TEST_F(SyscallTest, NumbersAreAsWideAsTheKernelTakesThem) {
  constexpr uint64_t kAbove = uint64_t{7} << 32;
  EXPECT_THAT(Writes(__NR_poll, {kBuffer, kAbove | 2, 0}, 1),
              ElementsAre(MemoryRange{kBuffer, 16}));
  EXPECT_THAT(Writes(__NR_select, {kAbove | 5, kBuffer}, 1),
              ElementsAre(MemoryRange{kBuffer, 8}));
}

TEST_F(SyscallTest, VectorsAreFilledInOrder) {
  Store(kBuffer, kBuffer + 100);
  Store(kBuffer + 8, 10);
  Store(kBuffer + 16, kBuffer + 200);
  Store(kBuffer + 24, 10);
  EXPECT_THAT(Writes(__NR_readv, {0, kBuffer, 2}, 13),
              ElementsAre(MemoryRange{kBuffer + 100, 10},
                          MemoryRange{kBuffer + 200, 3}));
}

TEST_F(SyscallTest, SocketAddressesEndAtTheShorterLength) {
  Store(kBuffer, 8);
  const auto call = BeginSyscall(__NR_getsockname,
                                 {3, kBuffer + 64, kBuffer, 0, 0, 0}, memory_);
  ASSERT_TRUE(call.has_value());
  Store(kBuffer, 16);  // the kernel says what it would have written
  EXPECT_THAT(
      EffectsOf(*call, 0, memory_)->writes,
      ElementsAre(MemoryRange{kBuffer + 64, 8}, MemoryRange{kBuffer, 4}));
}

TEST_F(SyscallTest, MappingsAreWholePagesAsFarAsTheFileGoes) {
  char name[] = "/tmp/clew-syscall-XXXXXX";
  const int fd = mkstemp(name);
  ASSERT_EQ(ftruncate(fd, 5000), 0);
  const auto f = static_cast<uint64_t>(fd);
  EXPECT_THAT(Writes(__NR_mmap, {0, 16384, 1, MAP_PRIVATE, f, 4096}, 0x20000),
              ElementsAre(MemoryRange{0x20000, 904}));
  EXPECT_THAT(Writes(__NR_mmap, {0, 100, 1, MAP_PRIVATE, f, 0}, 0x20000),
              ElementsAre(MemoryRange{0x20000, 4096}));
  EXPECT_THAT(
      Writes(__NR_mmap, {0, 16384, 1, MAP_PRIVATE | MAP_ANONYMOUS, f}, 0x20000),
      IsEmpty());
  close(fd);
  unlink(name);
}

TEST_F(SyscallTest, UnknownUsesAreRefusedByName) {
  const auto call = BeginSyscall(__NR_ioctl, {0, 0x1234, kBuffer}, memory_);
  const auto effects = EffectsOf(*call, 0, memory_);
  ASSERT_FALSE(effects.has_value());
  EXPECT_THAT(effects.error().message, HasSubstr("ioctl request 0x1234"));
  EXPECT_TRUE(EffectsOf(*call, -EINVAL, memory_).has_value());
}

TEST_F(SyscallTest, UnknownRequestsWithoutAnAddressWriteNothing) {
  for (const uint64_t argument : {0u, 7u, 4095u}) {
    EXPECT_THAT(Writes(__NR_ioctl, {0, 0x1234, argument}, 0), IsEmpty());
    EXPECT_THAT(Writes(__NR_prctl, {12345, argument}, 0), IsEmpty());
  }
  for (size_t i = 1; i <= 4; ++i) {
    std::array<uint64_t, 6> args = {12345};
    args[i] = kBuffer;
    const auto call = BeginSyscall(__NR_prctl, args, memory_);
    const auto effects = EffectsOf(*call, 0, memory_);
    ASSERT_FALSE(effects.has_value()) << i;
    EXPECT_THAT(effects.error().message,
                HasSubstr("prctl request 0x3039 (12345)"));
  }
}

TEST_F(SyscallTest, EveryRequestWithARowIsKnown) {
  for (const RequestCall& call : AllRequestCalls()) {
    for (const RequestRow& row : call.rows) {
      std::array<uint64_t, 6> args = {};
      args[call.argument] = row.number;
      args[call.argument + row.behind] = kBuffer;
      if (row.extent == RequestExtent::kUnknown) {
        const auto call_of_it = BeginSyscall(call.number, args, memory_);
        const auto effects = EffectsOf(*call_of_it, 0, memory_);
        ASSERT_FALSE(effects.has_value()) << row.name;
        EXPECT_EQ(effects.error().code, ErrorCode::kUnsupported);
        continue;
      }
      const auto writes = Writes(call.number, args, 0);
      if (row.bytes == 0) {
        EXPECT_THAT(writes, IsEmpty()) << row.name;
      } else if (row.extent == RequestExtent::kFixed) {
        EXPECT_THAT(writes, ElementsAre(MemoryRange{kBuffer, row.bytes}))
            << row.name;
      }
    }
  }
}

TEST_F(SyscallTest, RequestsWriteWhatTheirTableSays) {
  EXPECT_THAT(Writes(__NR_prctl, {PR_GET_NAME, kBuffer}, 0),
              ElementsAre(MemoryRange{kBuffer, 16}));
  EXPECT_THAT(Writes(__NR_prctl, {PR_GET_SECUREBITS, kBuffer}, 0), IsEmpty());
  EXPECT_THAT(Writes(__NR_ioctl, {0, TCGETS, kBuffer}, 0),
              ElementsAre(MemoryRange{kBuffer, 36}));
  EXPECT_THAT(Writes(__NR_ioctl, {0, SIOCGIFFLAGS, kBuffer}, 0),
              ElementsAre(MemoryRange{kBuffer, 40}));
  // As much as there is room for of what it returns.
  for (const int64_t result : {3, 4, 5}) {
    EXPECT_THAT(
        Writes(__NR_keyctl, {KEYCTL_READ, 7, kBuffer, 4}, result),
        ElementsAre(MemoryRange{
            kBuffer, std::min(static_cast<uint64_t>(result), uint64_t{4})}))
        << result;
  }
  // The length as the kernel left it, and the buffer.
  Store(kBuffer, 80);
  Store(kBuffer + 8, kBuffer + 100);
  EXPECT_THAT(
      Writes(__NR_ioctl, {0, SIOCGIFCONF, kBuffer}, 0),
      ElementsAre(MemoryRange{kBuffer, 16}, MemoryRange{kBuffer + 100, 80}));
}

TEST_F(SyscallTest, SentMessagesAreToldTheirLengths) {
  EXPECT_THAT(
      Writes(__NR_sendmmsg, {3, kBuffer, 9, 0}, 2),
      ElementsAre(MemoryRange{kBuffer + 56, 4}, MemoryRange{kBuffer + 120, 4}));
}

TEST_F(SyscallTest, WhatKernelsMayLackIsKnownAsLongAsItFails) {
  for (const uint64_t number : {__NR_io_setup, __NR_io_uring_setup}) {
    EXPECT_THAT(Writes(number, {8, kBuffer}, -ENOSYS), IsEmpty());
    const auto call = BeginSyscall(number, {8, kBuffer}, memory_);
    const auto effects = EffectsOf(*call, 3, memory_);
    ASSERT_FALSE(effects.has_value());
    EXPECT_THAT(effects.error().message, HasSubstr("succeeded"));
  }
}

TEST_F(SyscallTest, AFutexWaitBlocksOnlyWhileTheValueIsAsExpected) {
  Store(kBuffer, 5);
  for (const uint64_t expected : {5u, 6u}) {
    const auto call = BeginSyscall(
        __NR_futex, {kBuffer, FUTEX_WAIT_PRIVATE, expected}, memory_);
    EXPECT_EQ(MayBlock(*call, memory_), expected == 5) << expected;
  }
}

TEST_F(SyscallTest, AFutexWaitThatTheKernelRefusesDoesNotBlock) {
  Store(kBuffer, 5);
  Store(kBuffer + 9, 5);
  for (const uint64_t bits : {0u, 1u}) {
    const auto call = BeginSyscall(
        __NR_futex, {kBuffer, FUTEX_WAIT_BITSET, 5, 0, 0, bits}, memory_);
    EXPECT_EQ(MayBlock(*call, memory_), bits != 0) << bits;
  }
  const auto call =
      BeginSyscall(__NR_futex, {kBuffer + 9, FUTEX_WAIT, 5}, memory_);
  EXPECT_FALSE(MayBlock(*call, memory_));
}

TEST(ReservationTest, LargeMappingsAreRefusedWithTheirSizeOthersPass) {
  const auto available = [] { return uint64_t{8} << 30; };
  const uint64_t shadow = uint64_t{16} << 40;  // AddressSanitizer's
  const auto refused =
      CheckReservation(__NR_mmap, {0, shadow, PROT_NONE}, available);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("maps 16384.0 GiB"));
  EXPECT_THAT(refused.error().message, HasSubstr("takes 96.0 GiB"));
  const uint64_t heap = uint64_t{64} << 30;
  EXPECT_TRUE(CheckReservation(__NR_mmap, {0, heap}, available).has_value());
  EXPECT_TRUE(
      CheckReservation(__NR_munmap, {0, shadow}, available).has_value());
  EXPECT_FALSE(
      CheckReservation(__NR_mremap, {0, 0, shadow}, available).has_value());
  const auto little = [] { return uint64_t{1} << 30; };
  EXPECT_FALSE(CheckReservation(__NR_mmap, {0, heap}, little).has_value());
}

TEST(FutexModelTest, WakesInOrderOfFallingAsleep) {
  FutexModel model;
  for (uint32_t i = 0; i < 4; ++i) {
    model.Wait(i, 100, UINT32_MAX);
  }
  model.Wait(4, 200, UINT32_MAX);
  EXPECT_THAT(model.Wake(100, 2, UINT32_MAX), ElementsAre(0, 1));
  model.Requeue(100, 200, 1);
  EXPECT_THAT(model.Wake(200, 9, UINT32_MAX), ElementsAre(4, 2));
  EXPECT_THAT(model.Wake(100, 9, UINT32_MAX), ElementsAre(3));
}

TEST(FutexModelTest, ACallWakesAndMovesWhomItSays) {
  FutexModel model;
  for (uint32_t i = 0; i < 5; ++i) {
    model.Wait(i, 100, UINT32_MAX);
  }
  const FutexCall requeue{.kind = FutexCall::Kind::kRequeue,
                          .addr = 100,
                          .addr2 = 200,
                          .value = 1,
                          .value2 = 2};
  EXPECT_THAT(model.WakeBy(requeue, 0), ElementsAre());
  EXPECT_THAT(model.Wake(200, 9, UINT32_MAX), ElementsAre());
  EXPECT_THAT(model.WakeBy(requeue, 3), ElementsAre(0));
  const FutexCall wake_op{
      .kind = FutexCall::Kind::kWakeOp, .addr = 100, .addr2 = 200, .value = 1};
  EXPECT_THAT(model.WakeBy(wake_op, 2), ElementsAre(3, 1));
  const FutexCall wake{.kind = FutexCall::Kind::kWake, .addr = 200};
  EXPECT_THAT(model.WakeBy(wake, 1), ElementsAre(2));
  EXPECT_THAT(model.Wake(100, 9, UINT32_MAX), ElementsAre(4));
}

TEST(FutexModelTest, SleepersKnownToBeWokenComeFirst) {
  FutexModel model;
  for (uint32_t i = 0; i < 3; ++i) {
    model.Wait(i, 100, UINT32_MAX);
  }
  model.MarkWoken(2);
  EXPECT_THAT(model.Wake(100, 1, UINT32_MAX), ElementsAre(2));
  model.Remove(0);
  EXPECT_THAT(model.Wake(100, 9, UINT32_MAX), ElementsAre(1));
}

}  // namespace
}  // namespace clew::recorder
