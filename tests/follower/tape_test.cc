// Goal: a tape gives the items of its sources at their positions, again and
// again, until they are forgotten; it knows what it holds, never holds more
// than its limit, and stops at a gap. Method: hand-picked cases over a scripted
// source.
#include "follower/tape.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/follower/scripted.h"

namespace clew::follower {
namespace {

// Its times are those of positions.
class CountedScript final : public ScriptedStreams {
 public:
  using ScriptedStreams::ScriptedStreams;
  TscTicks NotBefore(Tid) override {
    return TscTicks(ahead() == nullptr ? ~uint64_t{0} : 100 * pulled());
  }
};

StreamItem Block(uint64_t ip) {
  StreamBlock block;
  block.ip = TraceeAddr(ip);
  block.insn_count = 1;
  return block;
}

TEST(TapeTest, GivesItemsByPositionInAnyOrder) {
  CountedScript streams({Block(10), Block(20), Block(30)});
  ScriptedInputs inputs;
  Tape tape(streams, inputs);
  for (const uint64_t position : {2u, 0u, 1u, 2u}) {
    const auto block = tape.Block(0, position);
    ASSERT_TRUE(block);
    EXPECT_EQ((*block)->ip, TraceeAddr(10 * (position + 1)));
  }
  const auto end = tape.Block(0, 3);
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, nullptr);
  EXPECT_EQ(tape.IndexOf(kThread), 0u);
  EXPECT_EQ(tape.IndexOf(Tid(8)), std::nullopt);
}

TEST(TapeTest, CodeOf32BitsIsRefusedByName) {
  StreamBlock block = std::get<StreamBlock>(Block(0x1234));
  block.code_bits = 32;
  CountedScript streams({Block(10), block});
  ScriptedInputs inputs;
  Tape tape(streams, inputs);
  ASSERT_TRUE(tape.Block(0, 0));
  const auto refused = tape.Block(0, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("0x1234: 32-bit code"),
            std::string::npos);
}

TEST(TapeTest, HoldsNoMoreThanItsLimitAndForgettingMakesRoom) {
  CountedScript streams({Block(10), Block(20), Block(30)});
  ScriptedInputs inputs;
  Tape tape(streams, inputs, {.items_max = 2});
  ASSERT_TRUE(tape.Block(0, 1));
  const auto third = tape.Block(0, 2);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kLimit);
  tape.Forget(0, 1, 0);
  const auto again = tape.Block(0, 2);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->ip, TraceeAddr(30));
}

TEST(TapeTest, KnowsWhatIsAtHandAndWhenTheRestBegins) {
  CountedScript streams({Block(10), Block(20), Block(30)});
  ScriptedInputs inputs;
  Tape tape(streams, inputs);
  EXPECT_FALSE(tape.HasBlock(0, 0));
  EXPECT_EQ(tape.NotBefore(0), TscTicks(0));
  ASSERT_TRUE(tape.Block(0, 1));
  EXPECT_TRUE(tape.HasBlock(0, 0));
  EXPECT_TRUE(tape.HasBlock(0, 1));
  EXPECT_FALSE(tape.HasBlock(0, 2));
  EXPECT_EQ(tape.NotBefore(0), TscTicks(200));
  tape.Forget(0, 2, 0);
  EXPECT_FALSE(tape.HasBlock(0, 2));
  ASSERT_TRUE(tape.Block(0, 3));
  EXPECT_TRUE(tape.HasBlock(0, 2));
  EXPECT_EQ(tape.NotBefore(0), TscTicks(~uint64_t{0}));
}

TEST(TapeTest, HasItsBeginningUntilItForgets) {
  CountedScript streams({Block(10), Block(20)});
  ScriptedInputs inputs;
  Tape tape(streams, inputs);
  EXPECT_TRUE(tape.HasBeginning());
  ASSERT_TRUE(tape.Block(0, 1));
  tape.Forget(0, 0, 0);
  EXPECT_TRUE(tape.HasBeginning());
  tape.Forget(0, 1, 0);
  EXPECT_FALSE(tape.HasBeginning());
}

TEST(TapeTest, StopsAtAGapAndSaysWhere) {
  Gap gap;
  gap.core = CoreId(3);
  gap.aux_offset = 0x1234;
  gap.detail = "overflow";
  CountedScript streams({Block(10), gap, Block(30)});
  ScriptedInputs inputs;
  Tape tape(streams, inputs);
  ASSERT_TRUE(tape.Block(0, 0));
  const auto behind = tape.Block(0, 1);
  ASSERT_FALSE(behind);
  EXPECT_EQ(behind.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(behind.error().message.find("core 3 aux offset 0x1234"),
            std::string::npos);
}

SyscallInput Getpid(int64_t result) {
  SyscallInput call;
  call.number = 39;
  call.result = result;
  return call;
}

TEST(TapeTest, StopsAtAnUnknownInputAndSaysWhereAndWhy) {
  CountedScript streams({Block(10)});
  ScriptedInputs inputs(
      {Getpid(7),
       UnknownInput{.count = 1, .cause = "the ring was full", .call_number = 0},
       Getpid(8)});
  Tape tape(streams, inputs);
  const auto before = tape.Input(0, 0);
  ASSERT_TRUE(before);
  EXPECT_EQ(std::get<SyscallInput>(**before).result, 7);
  for (int i = 0; i < 2; ++i) {  // it stays there
    const auto unknown = tape.Input(0, 1);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(unknown.error().message,
              "thread 7: input 1 is unknown (read, 1 in all: the ring was "
              "full); following past it is not supported");
  }
}

}  // namespace
}  // namespace clew::follower
