// Goal: what makes a race of accesses to one word, and what keeps two from
// being one: a common lock, the creation or end of a thread, bytes that do not
// meet. Method: all sequences of three accesses of two threads against the
// table of unserializable ones; hand-picked cases for the rest.
#include "solver/race_words.h"

#include <asm/unistd_64.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "solver/descriptor_use.h"

namespace clew::solver {
namespace {

constexpr AccessKind kR = AccessKind::kRead;
constexpr AccessKind kW = AccessKind::kWrite;

// A word, and threads that access it one after the other.
class RaceWordTest : public testing::Test {
 protected:
  Seen Make(size_t thread, AccessKind kind, uint8_t bytes = 0xff) {
    Seen seen = {.what = {.access = {.thread = Tid(static_cast<int>(thread)),
                                     .insn_index = ++order_,
                                     .ip = TraceeAddr(order_),
                                     .addr = TraceeAddr(0x1000),
                                     .size_bytes = 8,
                                     .kind = kind},
                          .value = 0,
                          .caller = {},
                          .call = {}},
                 .thread = thread,
                 .order = order_,
                 .locks = locks_.HeldBy(thread),
                 .owner = Owner::kProgram,
                 .begun = begun_.Of(thread),
                 .locked = locked_.Of(thread)};
    seen.bytes = bytes;
    return seen;
  }
  void Note(const Seen& seen) {
    word_.Note(seen, {.begun = begun_, .locked = locked_, .locks = locks_});
  }
  void Access(size_t thread, AccessKind kind, uint8_t bytes = 0xff) {
    Note(Make(thread, kind, bytes));
  }
  // As an atomic read-modify-write of the program's code does.
  void Lock(size_t thread, uint64_t addr) {
    SetWord(addr, 0);
    const machine::ObservedAccess access = {
        .ip = 1,
        .insn_offset = 0,
        .addr = addr,
        .value = 0,
        .size_bytes = 4,
        .kind = AccessKind::kReadModifyWrite};
    Tell(thread, access);
    SetWord(addr, 1);
    locks_.Settle();
    Pass();
  }
  void Unlock(size_t thread, uint64_t addr) {
    Tell(thread, {.ip = 1,
                  .insn_offset = 0,
                  .addr = addr,
                  .value = 0,
                  .size_bytes = 4,
                  .kind = kW});
    SetWord(addr, 0);
    Pass();
  }
  void SetUp() override { memory_.Map(kLocks, 4096, kProtRead | kProtWrite); }

  static constexpr uint64_t kLocks = 0x7000;
  machine::Memory memory_;
  LockWatch locks_{memory_};
  ThreadOrder begun_;
  ThreadOrder locked_;
  RaceWord word_;
  uint64_t order_ = 0;

 private:
  void SetWord(uint64_t addr, uint32_t value) {
    ASSERT_TRUE(memory_.Poke(addr, std::as_bytes(std::span(&value, 1))));
  }
  void Tell(size_t thread, const machine::ObservedAccess& access) {
    locks_.Note({.thread = thread,
                 .access = access,
                 .registers = registers_,
                 .stack = stack_,
                 .of_program = true,
                 .site = TraceeAddr(access.ip)});
  }
  void Pass() {
    for (const auto& change : locks_.TakeChanges()) {
      if (change.taken) {
        locked_.Take(change.thread, change.addr);
      } else {
        locked_.Give(change.thread, change.addr);
      }
    }
  }
  machine::Registers registers_;
  CallStack stack_;
};

TEST_F(RaceWordTest, TriplesAreTheUnserializableOnes) {
  for (int bits = 0; bits < 8; ++bits) {
    const std::array kinds = {bits & 1 ? kW : kR, bits & 2 ? kW : kR,
                              bits & 4 ? kW : kR};
    word_ = RaceWord();
    Access(0, kinds[0]);
    Access(1, kinds[1]);
    Access(0, kinds[2]);
    const bool wanted = (kinds == std::array{kR, kW, kW}) ||
                        (kinds == std::array{kR, kW, kR}) ||
                        (kinds == std::array{kW, kW, kR}) ||
                        (kinds == std::array{kW, kR, kW});
    const auto best = word_.Best();
    EXPECT_EQ(best && best->is_triple, wanted) << bits;
    EXPECT_EQ(best.has_value(), bits != 0) << bits;
  }
}

TEST_F(RaceWordTest, OneLockMakesItNone) {
  for (const bool same : {true, false}) {
    word_ = RaceWord();
    for (const size_t thread : {0, 1, 0}) {
      const uint64_t lock = same || thread == 0 ? kLocks : kLocks + 64;
      Lock(thread, lock);
      Access(thread, kR);
      Access(thread, kW);
      Unlock(thread, lock);
    }
    EXPECT_EQ(word_.Best().has_value(), !same);
  }
}

TEST_F(RaceWordTest, AnActOnWhatAnEarlierSectionReadIsTold) {
  for (const size_t thread : {0, 1, 0}) {
    Lock(thread, kLocks);
    Access(thread, thread == 0 ? kR : kW);
    Unlock(thread, kLocks);
  }
  const auto best = word_.Best();
  ASSERT_TRUE(best);
  EXPECT_TRUE(best->ToRace().under_locks);
}

TEST_F(RaceWordTest, AnOrderByLocksIsNoSectionOfOne) {
  const auto pass_the_lock_on = [this](size_t from, size_t to) {
    Lock(from, kLocks);
    Unlock(from, kLocks);
    Lock(to, kLocks);
    Unlock(to, kLocks);
  };
  Access(0, kR);
  pass_the_lock_on(0, 1);
  Access(1, kW);
  pass_the_lock_on(1, 0);
  Access(0, kR);
  const auto best = word_.Best();
  ASSERT_TRUE(best);
  EXPECT_TRUE(best->ordered);
  EXPECT_FALSE(best->ToRace().under_locks);
}

TEST_F(RaceWordTest, CreationAndEndPutInOrder) {
  Access(0, kW);
  begun_.Pass(0, 1);
  Access(1, kW);
  EXPECT_FALSE(word_.Best());
  begun_.Pass(1, 0);
  Access(0, kR);
  EXPECT_FALSE(word_.Best());
  Access(2, kR);  // which nothing puts in order
  EXPECT_TRUE(word_.Best());
}

TEST_F(RaceWordTest, NeighboursDoNotMeet) {
  Access(0, kW, 0x0f);
  Access(1, kW, 0xf0);
  Access(0, kR, 0x0f);
  EXPECT_FALSE(word_.Best());
  Access(1, kR, 0x18);
  EXPECT_TRUE(word_.Best());
}

TEST_F(RaceWordTest, WhatNobodyOfTheProgramCalledForIsInternal) {
  Seen kernel = Make(0, kW);
  kernel.owner = Owner::kNobody;
  Note(kernel);
  Access(1, kR);
  ASSERT_TRUE(word_.Best());
  EXPECT_TRUE(word_.Best()->internal);
  word_ = RaceWord();
  kernel.what.caller = TraceeAddr(5);
  Note(kernel);
  Access(1, kR);
  ASSERT_TRUE(word_.Best());
  EXPECT_FALSE(word_.Best()->internal);
}

TEST(DescriptorUseTest, ChangesAreThoseOfCallsThatSucceeded) {
  const auto uses = [](uint64_t number, int64_t result, uint64_t first,
                       uint64_t third = 0) {
    SyscallInput call;
    call.number = number;
    call.args = {first, 0, third};
    call.result = result;
    return UsesOf(call);
  };
  ASSERT_EQ(uses(__NR_close, 0, 5).size(), 1u);
  EXPECT_TRUE(uses(__NR_close, 0, 5)[0].changes);
  EXPECT_FALSE(uses(__NR_close, -EBADF, 5)[0].changes);
  EXPECT_FALSE(uses(__NR_read, 3, 5)[0].changes);
  ASSERT_EQ(uses(__NR_openat, 7, 0).size(), 1u);
  EXPECT_EQ(uses(__NR_openat, 7, 0)[0].descriptor, 7u);
  EXPECT_TRUE(uses(__NR_openat, -ENOENT, 0).empty());
  const auto dup = uses(__NR_dup2, 9, 4);
  ASSERT_EQ(dup.size(), 2u);
  EXPECT_FALSE(dup[0].changes);
  EXPECT_EQ(dup[1].descriptor, 9u);
  EXPECT_TRUE(dup[1].changes);
  EXPECT_TRUE(uses(__NR_getpid, 9, 4).empty());
}

TEST(LockCallTest, NamesCountWithoutTheirUnderscores) {
  EXPECT_EQ(LockCallNamed("pthread_mutex_lock"), LockCall::kLock);
  EXPECT_EQ(LockCallNamed("___pthread_mutex_lock"), LockCall::kLock);
  EXPECT_EQ(LockCallNamed("__pthread_rwlock_rdlock"), LockCall::kReadLock);
  EXPECT_EQ(LockCallNamed("pthread_mutex_init"), LockCall::kNone);
  EXPECT_EQ(LockCallNamed(""), LockCall::kNone);
  EXPECT_EQ(LockCallNamed("___"), LockCall::kNone);
}

}  // namespace
}  // namespace clew::solver
