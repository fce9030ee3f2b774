// Goal: a thread is said to hold a lock from the return of the call that took
// it to the entry of the one that gives it back, and to be in the program's
// call that it is in. Method: scripted stacks: CALL, an access of the function,
// RET.
#include "solver/lock_watch.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <span>

namespace clew::solver {
namespace {

constexpr uint64_t kLock = 0x7000;
constexpr uint64_t kOther = 0x7100;
constexpr uint64_t kProgram = 0x400000;  // code, up to kLibrary
constexpr uint64_t kLibrary = 0x7f0000;
constexpr uint64_t kCallBytes = 5;

// A thread that calls functions.
class Caller {
 public:
  Caller(LockWatch& locks, size_t thread) : locks_(locks), thread_(thread) {
    registers_.gpr[kRsp] = 0x10000 * (thread + 1);
  }

  void Call(uint64_t from) {
    registers_.gpr[kRsp] -= 8;
    Access({.ip = from,
            .insn_offset = 0,
            .addr = registers_.gpr[kRsp],
            .value = from + kCallBytes,
            .size_bytes = 8,
            .kind = AccessKind::kWrite},
           LockCall::kNone);
  }
  // An access by the function that was called.
  bool In(LockCall call, uint64_t object, uint64_t second = 0) {
    registers_.gpr[kRdi] = object;
    registers_.gpr[kRsi] = second;
    return Access({.ip = kLibrary,
                   .insn_offset = 0,
                   .addr = object + 16,
                   .value = 0,
                   .size_bytes = 4,
                   .kind = AccessKind::kRead},
                  call);
  }
  void Return(uint64_t from, uint64_t result) {
    registers_.gpr[kRax] = result;
    Access({.ip = kLibrary + 1,
            .insn_offset = 0,
            .addr = registers_.gpr[kRsp],
            .value = from + kCallBytes,
            .size_bytes = 8,
            .kind = AccessKind::kRead},
           LockCall::kNone);
    registers_.gpr[kRsp] += 8;
  }
  void Use(LockCall call, uint64_t object, uint64_t result = 0,
           uint64_t second = 0) {
    Call(kProgram);
    EXPECT_TRUE(In(call, object, second));
    Return(kProgram, result);
  }
  // A jump out of everything.
  void Leave() {
    registers_.gpr[kRsp] = 0x10000 * (thread_ + 1);
    Access({.ip = kProgram,
            .insn_offset = 0,
            .addr = 0x9000,
            .value = 0,
            .size_bytes = 4,
            .kind = AccessKind::kRead},
           LockCall::kNone);
  }
  // An atomic read-modify-write by the program. Returns whether its word is a
  // lock's.
  bool Exchange(machine::Memory& memory, uint64_t addr, uint64_t to) {
    uint64_t before = 0;
    EXPECT_TRUE(
        memory.Peek(addr, std::as_writable_bytes(std::span(&before, 1))));
    const bool is_lock = Access({.ip = kProgram,
                                 .insn_offset = 0,
                                 .addr = addr,
                                 .value = before,
                                 .size_bytes = 8,
                                 .kind = AccessKind::kReadModifyWrite},
                                LockCall::kNone);
    EXPECT_TRUE(memory.Poke(addr, std::as_bytes(std::span(&to, 1))));
    locks_.Settle();
    return is_lock;
  }
  const CallStack& stack() const { return stack_; }

 private:
  bool Access(const machine::ObservedAccess& access, LockCall call) {
    stack_.Drop(registers_.gpr[kRsp]);
    const bool is_lock = locks_.Note({.thread = thread_,
                                      .access = access,
                                      .registers = registers_,
                                      .stack = stack_,
                                      .call = call,
                                      .of_program = access.ip < kLibrary,
                                      .site = TraceeAddr(access.ip)});
    stack_.Note(access,
                [](TraceeAddr addr) { return addr.as_int() < kLibrary; });
    return is_lock;
  }

  LockWatch& locks_;
  size_t thread_;
  machine::Registers registers_;
  CallStack stack_;
};

class LockWatchTest : public testing::Test {
 protected:
  bool Excluded() { return locks_.Exclude(locks_.HeldBy(0), locks_.HeldBy(1)); }
  machine::Memory memory_;
  LockWatch locks_{memory_};
  Caller one_{locks_, 0};
  Caller two_{locks_, 1};
};

TEST_F(LockWatchTest, IsHeldFromTheReturnToTheEntry) {
  one_.Call(kProgram);
  one_.In(LockCall::kLock, kLock);
  EXPECT_TRUE(locks_.Held(0).empty());
  ASSERT_TRUE(locks_.InCall(0));
  EXPECT_EQ(locks_.InCall(0)->addr, kLock);
  one_.Return(kProgram, 0);
  ASSERT_EQ(locks_.Held(0).size(), 1u);
  EXPECT_EQ(locks_.Held(0)[0].site, TraceeAddr(kProgram + kCallBytes));
  EXPECT_FALSE(locks_.InCall(0));
  one_.Call(kProgram);
  one_.In(LockCall::kUnlock, kLock);
  EXPECT_TRUE(locks_.Held(0).empty());
}

TEST_F(LockWatchTest, IsNotHeldAfterAFailure) {
  one_.Use(LockCall::kLock, kLock, EBUSY);
  EXPECT_TRUE(locks_.Held(0).empty());
  one_.Use(LockCall::kLock, kLock, EOWNERDEAD);
  EXPECT_EQ(locks_.Held(0).size(), 1u);
}

TEST_F(LockWatchTest, IsHeldUntilItIsGivenBackAsOftenAsItWasTaken) {
  one_.Use(LockCall::kLock, kLock);
  one_.Use(LockCall::kLock, kLock);
  one_.Use(LockCall::kUnlock, kLock);
  EXPECT_EQ(locks_.Held(0).size(), 1u);
  one_.Use(LockCall::kUnlock, kLock);
  EXPECT_TRUE(locks_.Held(0).empty());
}

TEST_F(LockWatchTest, ReadersDoNotKeepOneAnotherOut) {
  one_.Use(LockCall::kReadLock, kLock);
  two_.Use(LockCall::kReadLock, kLock);
  EXPECT_FALSE(Excluded());
  two_.Use(LockCall::kReadWriteFree, kLock);
  EXPECT_FALSE(Excluded());
  two_.Use(LockCall::kWriteLock, kLock);
  EXPECT_TRUE(Excluded());
}

TEST_F(LockWatchTest, ADifferentLockExcludesNothing) {
  one_.Use(LockCall::kLock, kLock);
  two_.Use(LockCall::kLock, kOther);
  EXPECT_FALSE(Excluded());
}

TEST_F(LockWatchTest, AWaitForAConditionGivesItsMutexBack) {
  one_.Use(LockCall::kLock, kOther);
  one_.Use(LockCall::kLock, kLock);
  one_.Call(kProgram);
  one_.In(LockCall::kWaitCondition, 0x8000, kLock);
  ASSERT_EQ(locks_.Held(0).size(), 1u);
  EXPECT_EQ(locks_.Held(0)[0].addr, kOther);
  one_.Return(kProgram, ETIMEDOUT);
  EXPECT_EQ(locks_.Held(0).size(), 2u);
}

TEST_F(LockWatchTest, AFunctionThatAJumpLeftTookNothing) {
  one_.Call(kProgram);
  one_.In(LockCall::kLock, kLock);
  one_.Leave();
  EXPECT_FALSE(locks_.InCall(0));
  EXPECT_TRUE(locks_.Held(0).empty());
}

class LockWordTest : public LockWatchTest {
 protected:
  LockWordTest() { memory_.Map(kWord, 0x1000, kProtRead | kProtWrite); }
  static constexpr uint64_t kWord = 0x10000;
};

// 2 is a waiter's, as in a lock by futex.
TEST_F(LockWordTest, IsHeldUntilItIsZero) {
  EXPECT_FALSE(one_.Exchange(memory_, kWord, 1));
  EXPECT_TRUE(two_.Exchange(memory_, kWord, 2));
  EXPECT_TRUE(two_.Exchange(memory_, kWord, 2));
  EXPECT_EQ(locks_.Held(0).size(), 1u);
  EXPECT_TRUE(one_.Exchange(memory_, kWord, 0));
  EXPECT_TRUE(locks_.Held(0).empty());
  EXPECT_FALSE(two_.Exchange(memory_, kWord, 2));
  EXPECT_EQ(locks_.Held(1).size(), 1u);
}

TEST_F(LockWordTest, IsNoneOnceItsHolderHasCounted) {
  one_.Exchange(memory_, kWord, 1);
  one_.Exchange(memory_, kWord, 2);
  EXPECT_TRUE(locks_.Held(0).empty());
  EXPECT_FALSE(two_.Exchange(memory_, kWord, 3));
  two_.Exchange(memory_, kWord, 0);
  two_.Exchange(memory_, kWord, 1);
  EXPECT_TRUE(locks_.Held(1).empty());
}

TEST_F(LockWatchTest, TheCallerIsTheInnermostInTheProgram) {
  EXPECT_EQ(one_.stack().caller(), TraceeAddr());
  one_.Call(kProgram + 0x100);
  one_.Call(kLibrary + 0x200);  // the library calls itself
  EXPECT_EQ(one_.stack().caller(), TraceeAddr(kProgram + 0x100 + kCallBytes));
  one_.Call(kProgram + 0x300);  // and the program, which calls it
  EXPECT_EQ(one_.stack().caller(), TraceeAddr(kProgram + 0x300 + kCallBytes));
  one_.Leave();
  EXPECT_TRUE(one_.stack().empty());
}

}  // namespace
}  // namespace clew::solver
