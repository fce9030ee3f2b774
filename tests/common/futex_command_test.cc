// Goal: what FUTEX_WAKE_OP does to a word is what this kernel does.
// Method: differential, every operation and comparison on boundary values; a
// sleeper that the kernel wakes tells how the comparison came out.
#include "common/linux/futex_command.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/support/wait_until.h"

namespace clew {
namespace {

constexpr uint32_t kOperands[] = {0, 1, 2, 5, 31, 0x7ff, 0x800, 0xfff};
constexpr uint32_t kWords[] = {0,          1,          2,          5,
                               0x7fffffff, 0x80000000, 0xfffff800, 0xffffffff};

long WakeOp(uint32_t* nobody, uint32_t* word, uint32_t encoded) {
  return syscall(SYS_futex, nobody, FUTEX_WAKE_OP_PRIVATE, 1, 1, word, encoded);
}

TEST(FutexCommandTest, OperationsAreTheKernels) {
  uint32_t nobody = 0;
  int compared = 0;
  for (uint32_t operation = 0; operation < 16; ++operation) {
    for (const uint32_t operand : kOperands) {
      for (const uint32_t before : kWords) {
        if ((operation & 8) != 0 && operand > 31) {
          continue;  // the kernel warns
        }
        const uint32_t encoded = operation << 28 | operand << 12;
        uint32_t word = before;
        const bool known = WakeOp(&nobody, &word, encoded) >= 0;
        const auto done = OperateOnFutex(encoded, before);
        ASSERT_EQ(done.has_value(), known) << operation;
        EXPECT_EQ(done ? done->value : before, word)
            << operation << " " << operand << " " << before;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 500);
}

// Whether the kernel wakes who sleeps on `word`, where it is not `before`
// afterwards.
TEST(FutexCommandTest, ComparisonsAreTheKernels) {
  uint32_t nobody = 0;
  for (uint32_t comparison = 0; comparison < 6; ++comparison) {
    for (const uint32_t operand : kOperands) {
      for (const uint32_t before : kWords) {
        uint32_t word = before;
        std::thread sleeper([&word, before] {
          syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, before, nullptr,
                  nullptr, 0);
        });
        const uint32_t encoded =
            uint32_t{FUTEX_OP_ADD} << 28 | comparison << 24 | operand;
        const auto done = OperateOnFutex(encoded, before);
        ASSERT_TRUE(done.has_value());
        EXPECT_EQ(done->value, before);
        // The sleeper is woken by no other call: it is moved to see it sleep.
        uint32_t elsewhere = 0;
        ASSERT_TRUE(test::WaitUntil([&] {
          return syscall(SYS_futex, &word, FUTEX_REQUEUE_PRIVATE, 0, 1,
                         &elsewhere, 0) == 1;
        }));
        syscall(SYS_futex, &elsewhere, FUTEX_REQUEUE_PRIVATE, 0, 1, &word, 0);
        EXPECT_EQ(WakeOp(&nobody, &word, encoded), done->wakes ? 1 : 0)
            << comparison << " " << operand << " " << before;
        if (!done->wakes) {
          syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
        }
        sleeper.join();
      }
    }
  }
}

TEST(FutexCommandTest, NamesAreThoseOfTheHeader) {
  EXPECT_STREQ(FutexCommandName(FUTEX_WAIT_PRIVATE), "FUTEX_WAIT");
  EXPECT_STREQ(FutexCommandName(FUTEX_LOCK_PI2), "FUTEX_LOCK_PI2");
  EXPECT_STREQ(FutexCommandName(FUTEX_CMP_REQUEUE_PI), "FUTEX_CMP_REQUEUE_PI");
  EXPECT_EQ(FutexCommandName(14), nullptr);
}

}  // namespace
}  // namespace clew
