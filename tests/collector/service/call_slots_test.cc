// Goal: no host keeps others from having a call at work, whatever it does with
// its own; who trickles or stands still makes way; engineers have a share.
// Method: hand-picked histories on a clock of the test's.
#include "collector/service/call_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/wait_until.h"

namespace clew::collector {
namespace {

using testing::HasSubstr;

const CallLimits kLimits{.what = "transfers",
                         .host_max = 4,
                         .total_max = 8,
                         .reserved = 2,
                         .idle_s_max = 60,
                         .bytes_per_s_min = 1024};

class CallSlotsTest : public testing::Test {
 protected:
  // A call and whether it was ended.
  struct Held {
    std::atomic<bool> ended = false;
    std::optional<CallSlots::Call> call;
  };
  std::unique_ptr<Held> Take(const std::string& host, bool engineer = false) {
    auto held = std::make_unique<Held>();
    auto call = slots_.Begin({.host = host, .engineer = engineer},
                             [at = held.get()] { at->ended = true; });
    why_ = call ? "" : call.error().message;
    if (!call) {
      EXPECT_EQ(call.error().sys_errno, EAGAIN);
      return nullptr;
    }
    held->call.emplace(*std::move(call));
    return held;
  }
  // `count` calls of as many hosts.
  std::vector<std::unique_ptr<Held>> TakeOfEach(const std::string& name,
                                                int count) {
    std::vector<std::unique_ptr<Held>> held;
    for (int i = 0; i < count; ++i) {
      held.push_back(Take(name + std::to_string(i)));
      EXPECT_NE(held.back(), nullptr) << why_;
    }
    return held;
  }

  // The thread of the slots has looked for idle calls, all of it at `now_s`.
  void WaitForLookAt(uint64_t now_s) {
    EXPECT_TRUE(clew::test::WaitUntil([&] { return looked_at_s_ == now_s; }));
    // It has the lock from before it asks for the time until it is done.
    (void)slots_.running();
  }

  std::atomic<uint64_t> now_s_ = 0;
  std::atomic<uint64_t> looked_at_s_ = 0;  // by that thread
  std::string why_;
  const std::thread::id test_thread_ = std::this_thread::get_id();
  CallSlots slots_{kLimits, [this] {
                     const uint64_t now_s = now_s_;
                     if (std::this_thread::get_id() != test_thread_) {
                       looked_at_s_ = now_s;
                     }
                     return now_s;
                   }};
};

TEST_F(CallSlotsTest, AHostHasSoManyCallsAtOnce) {
  std::vector<std::unique_ptr<Held>> held;
  for (int i = 0; i < 4; ++i) {
    held.push_back(Take("web1"));
    ASSERT_NE(held.back(), nullptr);
  }
  EXPECT_EQ(Take("web1"), nullptr);
  EXPECT_THAT(why_, HasSubstr("has 4 transfers"));
  EXPECT_NE(Take("web2"), nullptr);
  held.pop_back();
  EXPECT_NE(Take("web1"), nullptr);
}

TEST_F(CallSlotsTest, ANewcomerTakesAPlaceOfTheHostThatHasTheMost) {
  const auto one = Take("a");
  const auto first = Take("greedy");
  const auto second = Take("greedy");
  const auto third = Take("greedy");
  const auto b1 = Take("b");
  const auto b2 = Take("b");
  ASSERT_TRUE(one && first && second && third && b1 && b2);
  now_s_ = 1;
  first->call->Moved(100'000);
  third->call->Moved(100'000);
  const auto newcomer = Take("new");
  ASSERT_NE(newcomer, nullptr) << why_;
  EXPECT_TRUE(second->ended) << "the slowest of three";
  EXPECT_FALSE(one->ended || first->ended || third->ended || b1->ended ||
               b2->ended);
}

TEST_F(CallSlotsTest, WhereEachHasOneANewcomerWaitsForTheSlow) {
  auto held = TakeOfEach("web", 6);
  EXPECT_EQ(Take("new"), nullptr);
  EXPECT_THAT(why_, HasSubstr("as many transfers as may be are at work"));
  now_s_ = CallSlots::kYoung_s;
  for (size_t i = 0; i < held.size(); ++i) {
    held[i]->call->Moved(i == 3 ? 10 : 1'000'000);
  }
  const auto newcomer = Take("new");
  EXPECT_NE(newcomer, nullptr) << why_;
  EXPECT_TRUE(held[3]->ended) << "ten bytes in ten seconds";
  EXPECT_EQ(Take("new2"), nullptr) << "the others are not slow";
}

TEST_F(CallSlotsTest, EngineersHaveAShareAndMakeWayForNobody) {
  const auto held = TakeOfEach("web", 6);
  const auto one = Take("anna", true);
  const auto two = Take("anna", true);
  ASSERT_TRUE(one && two) << why_;
  now_s_ = CallSlots::kYoung_s;
  for (const auto& each : held) {
    each->call->Moved(1'000'000);
  }
  EXPECT_EQ(Take("new"), nullptr);
  EXPECT_FALSE(one->ended || two->ended);
}

// Each that is ended has its thread until it notices.
TEST_F(CallSlotsTest, CallsThatDoNotNoticeTheirEndAreBounded) {
  std::vector<std::unique_ptr<Held>> held = TakeOfEach("web", 6);
  int taken = 6;
  for (int i = 0; i < 100; ++i) {
    now_s_ += CallSlots::kYoung_s;
    held.push_back(Take("new" + std::to_string(i)));
    taken += held.back() != nullptr ? 1 : 0;
  }
  EXPECT_EQ(taken, 16) << "twice the limit";
}

TEST_F(CallSlotsTest, ACallThatStandsStillOrTricklesIsEnded) {
  const auto idle = Take("a");
  const auto trickling = Take("b");
  const auto busy = Take("c");
  for (uint64_t now_s = 5; now_s < 60; now_s += 5) {
    now_s_ = now_s;
    trickling->call->Moved(1);
    busy->call->Moved(6000);
  }
  now_s_ = 59;
  WaitForLookAt(59);
  EXPECT_FALSE(idle->ended || trickling->ended || busy->ended);
  trickling->call->Moved(1);
  busy->call->Moved(6000);
  now_s_ = 60;
  WaitForLookAt(60);
  EXPECT_TRUE(idle->ended);
  EXPECT_TRUE(trickling->ended) << "12 bytes in a minute";
  EXPECT_FALSE(busy->ended) << "1.2 kB a second";
}

}  // namespace
}  // namespace clew::collector
