// Goal: clone and clone3 say the same of the thread that they make, vfork as
// much as it knows; what makes none with this memory says nothing. Method: each
// way to call them, against what the manual pages say of the arguments.
#include "follower/kernel/new_thread.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#include <array>
#include <span>

#include "follower/kernel/machine_memory.h"
#include "tests/follower/scripted.h"

namespace clew::follower {
namespace {

constexpr uint64_t kArgsAt = 0x10000;
constexpr uint64_t kThreadFlags =
    CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_SETTLS;

class NewThreadTest : public testing::Test {
 protected:
  void SetUp() override { memory_.Map(kArgsAt, 4096, kProtRead); }
  std::optional<NewThread> Made(const SyscallInput& call) {
    return NewThreadOf(call, MachineMemory(memory_));
  }
  SyscallInput Clone3(uint64_t flags, int64_t result) {
    const std::array<uint64_t, 8> args = {flags, 0,      0x1111, 0x2222,
                                          0,     0x7000, 0x800,  0x3333};
    memory_.Poke(kArgsAt, std::as_bytes(std::span(args)));
    return Call(SYS_clone3, {kArgsAt, 88}, result);
  }

  machine::Memory memory_;
};

TEST_F(NewThreadTest, CloneSaysItInRegisters) {
  const auto made =
      Made(Call(SYS_clone, {kThreadFlags, 0x7800, 0x2222, 0x1111, 0x3333}, 9));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->tid, Tid(9));
  EXPECT_EQ(made->flags, kThreadFlags);
  EXPECT_EQ(made->stack_pointer, 0x7800u);
  EXPECT_EQ(made->tls, 0x3333u);
  EXPECT_EQ(made->child_tid_addr, 0x1111u);
}

TEST_F(NewThreadTest, Clone3SaysItInMemory) {
  const auto made = Made(Clone3(kThreadFlags, 9));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->tid, Tid(9));
  EXPECT_EQ(made->flags, kThreadFlags);
  EXPECT_EQ(made->stack_pointer, 0x7800u) << "the end of the stack";
  EXPECT_EQ(made->tls, 0x3333u);
  EXPECT_EQ(made->child_tid_addr, 0x1111u);
}

TEST_F(NewThreadTest, AProcessWithThisMemoryIsOne) {
  EXPECT_FALSE(Made(Clone3(kThreadFlags, 9))->is_process());
  const auto spawned = Made(Clone3(CLONE_VM | CLONE_VFORK, 9));
  ASSERT_TRUE(spawned);
  EXPECT_TRUE(spawned->is_process());
  EXPECT_EQ(spawned->stack_pointer, 0x7800u);
  const auto forked = Made(Call(SYS_vfork, {1, 2, 3, 4, 5, 6}, 9));
  ASSERT_TRUE(forked);
  EXPECT_TRUE(forked->is_process());
  EXPECT_EQ(forked->tid, Tid(9));
  EXPECT_EQ(forked->stack_pointer, 0u);
  EXPECT_EQ(forked->flags & CLONE_SETTLS, 0u);
}

TEST_F(NewThreadTest, WhatMakesNoThreadSaysNothing) {
  EXPECT_FALSE(Made(Clone3(CLONE_VFORK, 9))) << "memory of its own";
  EXPECT_FALSE(Made(Clone3(kThreadFlags, -38)));
  SyscallInput never_returned = Clone3(kThreadFlags, 9);
  never_returned.result.reset();
  EXPECT_FALSE(Made(never_returned));
  SyscallInput unmapped = Clone3(kThreadFlags, 9);
  unmapped.args[0] = 0x999000;
  EXPECT_FALSE(Made(unmapped));
  EXPECT_FALSE(Made(Call(SYS_clone, {0, 0x7800}, 9)));
  EXPECT_FALSE(Made(Call(SYS_fork, {}, 9)));
}

}  // namespace
}  // namespace clew::follower
