// Goal: an ItemQueue gives back what was pushed, in order, whatever came
// between, and has let go of what was popped once it is empty.
// Method: property; random pushes and pops beside a std::deque. The seed is in
// every message.

#include "decoder/item_queue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace clew::decoder {
namespace {

constexpr uint32_t kSlice = 7;

// Bounds mostly stay, as they do between two timing packets; they may also
// fall, and be as large as they get.
StreamBlock RandomBlock(std::mt19937_64& random, TscInterval& time) {
  if (random() % 4 == 0) {
    time.lo = TscTicks(random() % 3 == 0 ? random() : time.lo.as_int() + 1);
  }
  if (random() % 4 == 0) {
    time.hi = TscTicks(random() % 3 == 0 ? UINT64_MAX : random());
  }
  return {.ip = TraceeAddr(random()),
          .insn_count = static_cast<uint32_t>(random()),
          .slice = kSlice,
          .time = time,
          .interrupted = random() % 8 == 0,
          .is_syscall = random() % 8 == 0,
          .code_bits = static_cast<uint8_t>(random() % 8 == 0 ? 32 : 64)};
}

void ExpectFront(ItemQueue& queue, const StreamItem& wanted) {
  ASSERT_FALSE(queue.empty());
  const auto popped = queue.Pop(kSlice);
  ASSERT_TRUE(popped);
  const std::optional<StreamItem>& item = *popped;
  ASSERT_TRUE(item);
  ASSERT_EQ(item->index(), wanted.index());
  if (const auto* gap = std::get_if<Gap>(&wanted)) {
    EXPECT_EQ(std::get<Gap>(*item).detail, gap->detail);
    return;
  }
  EXPECT_EQ(std::get<StreamBlock>(*item), std::get<StreamBlock>(wanted));
}

TEST(ItemQueueTest, GivesBackWhatWasPushedInOrder) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    ItemQueue queue;
    std::deque<StreamItem> wanted;
    TscInterval time;
    for (int i = 0; i < 40000; ++i) {
      // Even odds, so that it is often empty; then thousands, and none again.
      const uint64_t pops_of_8 = i < 2000 ? 4 : i < 20000 ? 2 : 7;
      if (random() % 8 < pops_of_8) {
        if (!wanted.empty()) {
          ASSERT_NO_FATAL_FAILURE(ExpectFront(queue, wanted.front()));
          wanted.pop_front();
        }
      } else if (random() % 10 == 0) {
        Gap gap;
        gap.detail = fmt::format("gap {}", i);
        queue.Push(gap);
        wanted.push_back(gap);
      } else {
        const StreamBlock block = RandomBlock(random, time);
        queue.Push(block);
        wanted.push_back(block);
      }
      ASSERT_EQ(queue.empty(), wanted.empty());
      if (i % 1000 == 0) {
        ASSERT_EQ(queue.CountItems(), wanted.size());
      }
    }
  }
}

}  // namespace
}  // namespace clew::decoder
