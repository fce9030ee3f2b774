// Goal: exactly the locks that a thread holds by its list are found. Method:
// lists in the test's own memory, with locks of this thread and of others.
#include "common/linux/robust_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>

namespace clew {
namespace {

constexpr uint32_t kOwner = 4711;
constexpr uint32_t kOtherOwner = 4712;

struct Lock {
  uint32_t word = 0;
  robust_list entry = {};
};

class RobustListTest : public testing::Test {
 protected:
  RobustListTest() {
    head_.list.next = &head_.list;
    head_.futex_offset = offsetof(Lock, word) - long{offsetof(Lock, entry)};
  }

  void Push(Lock& lock) {
    lock.entry.next = head_.list.next;
    head_.list.next = &lock.entry;
  }
  static uint64_t AddrOf(const void* at) {
    return reinterpret_cast<uint64_t>(at);
  }

  // The words by their address.
  std::map<uint64_t, uint32_t> Held(uint64_t head) {
    std::map<uint64_t, uint32_t> held;
    ForHeldRobustLocks(
        head, kOwner,
        [this](uint64_t addr, auto& to) {
          if (unreadable_.contains(addr)) {
            return false;
          }
          std::memcpy(&to, reinterpret_cast<const void*>(addr), sizeof(to));
          return true;
        },
        [&](uint64_t word, uint32_t value) {
          EXPECT_TRUE(held.emplace(word, value).second) << "told twice";
        });
    return held;
  }
  std::map<uint64_t, uint32_t> Held() { return Held(AddrOf(&head_)); }

  robust_list_head head_ = {};
  std::array<Lock, 3> locks_ = {};
  std::set<uint64_t> unreadable_;
};

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST_F(RobustListTest, WithoutOneNothingIsHeld) {
  EXPECT_THAT(Held(0), IsEmpty());
  EXPECT_THAT(Held(), IsEmpty());
  unreadable_.insert(AddrOf(&head_));
  EXPECT_THAT(Held(), IsEmpty());
}

TEST_F(RobustListTest, OnlyWordsThatNameTheThreadAreHeld) {
  locks_[0].word = kOwner;
  locks_[1].word = kOtherOwner;
  locks_[2].word = kOwner | FUTEX_WAITERS;
  for (Lock& lock : locks_) {
    Push(lock);
  }
  EXPECT_THAT(Held(),
              UnorderedElementsAre(
                  Pair(AddrOf(&locks_[0].word), kOwner),
                  Pair(AddrOf(&locks_[2].word), kOwner | FUTEX_WAITERS)));
}

TEST_F(RobustListTest, OneThatIsBeingTakenCountsOnce) {
  locks_[0].word = kOwner;
  locks_[1].word = kOwner;
  Push(locks_[0]);
  head_.list_op_pending = &locks_[1].entry;
  const auto both = UnorderedElementsAre(Pair(AddrOf(&locks_[0].word), kOwner),
                                         Pair(AddrOf(&locks_[1].word), kOwner));
  EXPECT_THAT(Held(), both) << "not in the list yet";
  Push(locks_[1]);
  EXPECT_THAT(Held(), both) << "in it already";
}

TEST_F(RobustListTest, TheLowestBitOfAnEntryIsNoPartOfItsAddress) {
  locks_[0].word = kOwner;
  Push(locks_[0]);
  head_.list.next =
      reinterpret_cast<robust_list*>(AddrOf(&locks_[0].entry) | 1);
  EXPECT_THAT(Held(),
              UnorderedElementsAre(Pair(AddrOf(&locks_[0].word), kOwner)));
}

TEST_F(RobustListTest, ABrokenListEnds) {
  locks_[0].word = kOwner;
  locks_[1].word = kOwner;
  Push(locks_[0]);
  Push(locks_[1]);
  unreadable_.insert(AddrOf(&locks_[1].entry));
  EXPECT_THAT(Held(),
              UnorderedElementsAre(Pair(AddrOf(&locks_[1].word), kOwner)))
      << "what follows cannot be known";
  locks_[2].entry.next = &locks_[2].entry;  // never comes back to the head
  head_.list.next = &locks_[2].entry;
  EXPECT_THAT(Held(), IsEmpty());
}

}  // namespace
}  // namespace clew
