// Goal: nothing is taken from a channel of the process before it was put there,
// by whatever descriptor; where anybody else may put something there, nothing
// is claimed.
// Method: calls as the log has them, for every way to make, name, use, share
// and end a channel.
#include "follower/kernel/channels.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#include <cstring>
#include <set>
#include <string_view>

#include "tests/follower/scripted.h"

namespace clew::follower {
namespace {

constexpr uint64_t kBuffer = 0x10000;

class ChannelsTest : public testing::Test {
 protected:
  void SetUp() override { memory_.Map(kBuffer, 4096, kProtRead | kProtWrite); }
  template <class T>
  static MemoryWrite Write(const T& value) {
    MemoryWrite write{.addr = TraceeAddr(kBuffer), .bytes = {}};
    write.bytes.resize(sizeof(T));
    std::memcpy(write.bytes.data(), &value, sizeof(T));
    return write;
  }
  void Make(uint64_t number, std::array<uint64_t, 6> args,
            std::array<int, 2> fds) {
    SyscallInput call = Call(number, args, 0);
    call.writes.push_back(Write(fds));
    Run(call);
  }
  void Run(const SyscallInput& call) {
    EXPECT_TRUE(Channels::Concerns(call.number)) << call.number;
    channels_.Enter(call, memory_);
    channels_.Return(call);
  }
  void Store(std::string_view text) {
    memory_.Poke(kBuffer, std::as_bytes(std::span(text)));
  }
  void Put(int fd, int64_t bytes) {
    Run(Call(SYS_write, {static_cast<uint64_t>(fd), kBuffer, 100}, bytes));
  }
  // Takes, if that is possible now.
  bool Take(int fd, int64_t bytes) {
    const auto taking = channels_.Source(
        Call(SYS_read, {static_cast<uint64_t>(fd), kBuffer, 100}, bytes));
    const bool may = channels_.MayTake(taking);
    if (may) {
      channels_.Take(taking);
    }
    return may;
  }

  machine::Memory memory_;
  Channels channels_;
};

TEST_F(ChannelsTest, APipeGivesWhatWasPutAndNoMore) {
  Make(SYS_pipe2, {kBuffer, 0}, {3, 4});
  EXPECT_FALSE(Take(3, 1));
  Put(4, 5);
  EXPECT_TRUE(Take(3, 4));
  EXPECT_FALSE(Take(3, 2));
  EXPECT_TRUE(Take(3, 1));
  EXPECT_TRUE(Take(3, 0)) << "an end of file";
  EXPECT_TRUE(Take(3, -11)) << "EAGAIN";
  Put(4, -32);
  EXPECT_FALSE(Take(3, 1));
}

TEST_F(ChannelsTest, EndsOfASocketPairAreCrossed) {
  Make(SYS_socketpair, {1, 1, 0, kBuffer}, {3, 4});
  Put(3, 2);
  EXPECT_FALSE(Take(3, 1));
  EXPECT_TRUE(Take(4, 2));
  Run(Call(SYS_sendto, {4, kBuffer, 8}, 8));
  EXPECT_TRUE(Take(3, 8));
}

TEST_F(ChannelsTest, AnEventfdCountsItsValue) {
  Run(Call(SYS_eventfd2, {2, 0}, 5));
  const auto read = [this](uint64_t value) {
    SyscallInput call = Call(SYS_read, {5, kBuffer, 8}, 8);
    call.writes.push_back(Write(value));
    return channels_.Source(call);
  };
  EXPECT_TRUE(channels_.MayTake(read(2)));
  EXPECT_FALSE(channels_.MayTake(read(3)));
  memory_.Poke(kBuffer, Write(uint64_t{7}).bytes);
  Put(5, 8);
  EXPECT_TRUE(channels_.MayTake(read(9)));
  channels_.Take(read(9));
  EXPECT_FALSE(channels_.MayTake(read(1)));
}

TEST_F(ChannelsTest, DuplicatesAreTheSameEnd) {
  Make(SYS_pipe, {kBuffer}, {3, 4});
  Run(Call(SYS_dup, {4}, 6));
  Run(Call(SYS_fcntl, {3, 0, 10}, 10));
  Run(Call(SYS_dup2, {6, 7}, 7));
  EXPECT_FALSE(Take(10, 1));
  Put(7, 1);
  EXPECT_TRUE(Take(10, 1));
  Put(6, 1);
  EXPECT_TRUE(Take(3, 1));
  EXPECT_FALSE(Take(3, 1));
}

TEST_F(ChannelsTest, AWriteThatNeverReturnsMayHavePutAnything) {
  Make(SYS_pipe, {kBuffer}, {3, 4});
  Run(Call(SYS_write, {4, kBuffer, 100'000}, std::nullopt));
  EXPECT_TRUE(Take(3, 65'536));
}

TEST_F(ChannelsTest, WhatWasEnteredBeforeACloseStillCounts) {
  Make(SYS_pipe, {kBuffer}, {3, 4});
  Run(Call(SYS_close, {4}, 0));
  EXPECT_FALSE(Take(3, 1));
  Put(4, 1);
  EXPECT_TRUE(Take(3, 1));
  const auto taking = channels_.Source(Call(SYS_read, {3, kBuffer, 9}, 9));
  Run(Call(SYS_close, {3}, 0));
  EXPECT_TRUE(channels_.MayTake(taking)) << "perhaps of another one";
  Make(SYS_pipe, {kBuffer}, {3, 4});
  EXPECT_FALSE(Take(3, 1));
}

TEST_F(ChannelsTest, WhatOthersMayPutIntoIsNotConstrained) {
  const char* const paths[] = {"/proc/self/fd/4", "/dev/fd/4", "relative"};
  for (const char* path : paths) {
    channels_ = Channels();
    Make(SYS_pipe, {kBuffer}, {3, 4});
    Store("/tmp/some/file");
    Run(Call(SYS_openat, {0, kBuffer, 0}, 9));
    EXPECT_FALSE(Take(3, 1));
    Store(path);
    Run(Call(SYS_openat, {0, kBuffer, 0}, 9));
    EXPECT_TRUE(Take(3, 1)) << path;
  }
  for (const auto& call :
       {Call(SYS_fork, {}, 77), Call(SYS_clone, {CLONE_VFORK}, 77),
        Call(SYS_clone, {CLONE_VM | CLONE_VFORK}, 77),
        Call(SYS_sendmmsg, {9, kBuffer, 1}, 1),
        Call(SYS_pidfd_getfd, {9, 4}, 12), Call(SYS_close_range, {3, 4}, 0)}) {
    channels_ = Channels();
    Make(SYS_pipe, {kBuffer}, {3, 4});
    Run(Call(SYS_clone, {CLONE_VM | CLONE_THREAD}, 78));
    EXPECT_FALSE(Take(3, 1));
    Run(call);
    EXPECT_TRUE(Take(3, 1)) << call.number;
  }
}

TEST_F(ChannelsTest, OfADescriptorFromElsewhereNothingIsKnown) {
  EXPECT_TRUE(Take(0, 100));
  Put(1, 100);
  EXPECT_TRUE(Take(0, 100));
}

TEST_F(ChannelsTest, DigestsTellStatesApart) {
  const uint64_t none = channels_.Digest();
  Make(SYS_pipe, {kBuffer}, {3, 4});
  const uint64_t empty = channels_.Digest();
  Put(4, 3);
  const uint64_t full = channels_.Digest();
  EXPECT_TRUE(Take(3, 3));
  EXPECT_EQ((std::set{none, empty, full, channels_.Digest()}).size(), 4u);
}

}  // namespace
}  // namespace clew::follower
