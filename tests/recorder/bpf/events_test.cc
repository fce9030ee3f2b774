// Goal: events of the ring are checked field by field, and put together to what
// the thread did; whatever does not add up is told as a loss, never passed
// over. Method: hand-made events; every field broken; every truncation; random
// streams with random losses (property, the seed is in every message).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "common/digest.h"
#include "recorder/bpf/call_assembler.h"
#include "recorder/bpf/event_parser.h"
#include "tests/recorder/bpf/raw_events.h"
#include "tests/recorder/bpf/watched_program.h"

namespace clew::recorder::bpf {
namespace {

using testing::HasSubstr;

constexpr uint32_t kThread = 7;
constexpr uint64_t kSaRestart = 0x10000000;

TEST(EventParserTest, TakesWhatTheKernelWrites) {
  EXPECT_TRUE(ParseInputEvent(BytesOf(CallOf(kThread, 1, 0, 5))));
  EXPECT_TRUE(ParseInputEvent(BytesOf(SignalOf(kThread, 2, 0x1000))));
  EXPECT_TRUE(ParseInputEvent(BytesOf(EndOf(kThread, 9, 3, 1))));
  const auto bytes = PieceOf(kThread, 1, 0x1000, "hello");
  const auto piece = ParseInputEvent(bytes);
  ASSERT_TRUE(piece);
  EXPECT_EQ(std::get<PieceEvent>(*piece).bytes.size(), 5u);
}

TEST(EventParserTest, EveryTruncationAndExtensionIsRefused) {
  for (const auto& whole :
       {BytesOf(CallOf(kThread, 1, 0, 5)), BytesOf(SignalOf(kThread, 1, 9)),
        BytesOf(EndOf(kThread, 1)), PieceOf(kThread, 1, 64, "x")}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(ParseInputEvent(std::span(whole).first(size))) << size;
    }
    auto longer = whole;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(ParseInputEvent(longer));
  }
}

template <class Raw>
std::string Fault(Raw raw, const std::function<void(Raw&)>& change) {
  change(raw);
  const auto event = ParseInputEvent(BytesOf(raw));
  return event ? "" : event.error().message;
}

TEST(EventParserTest, EveryFieldOutOfItsRangeIsRefused) {
  const RawCall call = CallOf(kThread, 1, 0, 5);
  const auto fault = [&](const std::function<void(RawCall&)>& change) {
    return Fault(call, change);
  };
  EXPECT_THAT(fault([](RawCall& c) { c.head.kind = 5; }), HasSubstr("kind"));
  EXPECT_THAT(fault([](RawCall& c) { c.head.kind = 0; }), HasSubstr("kind"));
  EXPECT_THAT(fault([](RawCall& c) { c.head.thread = 0; }),
              HasSubstr("thread 0"));
  EXPECT_THAT(fault([](RawCall& c) { c.head.thread = 1u << 31; }),
              HasSubstr("thread 2147483648"));
  EXPECT_THAT(fault([](RawCall& c) { c.head.process = 0; }),
              HasSubstr("process 0"));
  EXPECT_THAT(fault([](RawCall& c) { c.head.lost = 1; }), HasSubstr("lost"));
  EXPECT_THAT(fault([](RawCall& c) { c.head.causes = 1; }), HasSubstr("lost"));
  EXPECT_THAT(fault([](RawCall& c) {
                c.head.lost = 1;
                c.head.causes = 1u << kRawCauses;
                c.head.sequence = 9;
              }),
              HasSubstr("causes"));
  EXPECT_THAT(fault([](RawCall& c) { c.head.zero = 1; }), HasSubstr("lost"));
  EXPECT_THAT(fault([](RawCall& c) { c.head.sequence = 0; }),
              HasSubstr("sequence 0"));
  EXPECT_THAT(fault([](RawCall& c) { c.flags = 2; }), HasSubstr("flags"));
  EXPECT_THAT(fault([](RawCall& c) { c.unknown = 1u << kRawCauses; }),
              HasSubstr("unknown"));
  EXPECT_THAT(Fault<RawSignal>(SignalOf(kThread, 1, 9),
                               [](RawSignal& s) { s.taken.number = 65; }),
              HasSubstr("signal number is 65"));
  auto piece = PieceOf(kThread, 1, 64, "x");
  piece[offsetof(RawPiece, size_bytes)] = std::byte{65};
  EXPECT_THAT(ParseInputEvent(piece).error().message, HasSubstr("room for 64"));
  piece = PieceOf(kThread, 1, ~uint64_t{0}, "xx");
  EXPECT_THAT(ParseInputEvent(piece).error().message, HasSubstr("wraps"));
  piece = PieceOf(kThread, 1, 64, "x");
  piece[offsetof(RawPiece, use)] = std::byte{kRawPieceUses};
  EXPECT_THAT(ParseInputEvent(piece).error().message, HasSubstr("use 4"));
}

class CallAssemblerTest : public testing::Test {
 protected:
  void Take(std::span<const std::byte> bytes) {
    const auto event = ParseInputEvent(bytes);
    ASSERT_TRUE(event) << event.error().message;
    ASSERT_TRUE(assembler_.Take(*event, sink_));
  }
  template <class Raw>
    requires std::is_trivially_copyable_v<Raw>
  void Take(const Raw& raw) {
    Take(BytesOf(raw));
  }
  const KeepingSink::Thread& seen() { return sink_.threads[kThread]; }

  CallAssembler assembler_{1000};
  KeepingSink sink_;
};

TEST_F(CallAssemblerTest, NamesMakeThePathOfTheFileOfTheirCall) {
  const std::string inode("\x01\x02\0\0\0\0\0\0", 8);
  Take(PieceOf(kThread, 1, 0, "libc.so", kRawFileName));
  Take(PieceOf(kThread, 1, 0, "lib", kRawFileName));
  Take(PieceOf(kThread, 1, 0, "usr", kRawFileName));
  Take(PieceOf(kThread, 1, 0, inode, kRawFile));
  Take(CallOf(kThread, 1, 9, 0x1000, 4));
  Take(PieceOf(kThread, 2, 0, "memfd:x", kRawFileName));
  Take(CallOf(kThread, 2, 9, 0x2000, 1));
  Take(CallOf(kThread, 3, 9, 0x3000));
  ASSERT_EQ(seen().calls.size(), 3u);
  EXPECT_EQ(seen().calls[0].path, "/usr/lib/libc.so");
  EXPECT_EQ(seen().calls[0].inode, 0x201u);
  EXPECT_TRUE(seen().calls[0].writes.empty());
  EXPECT_EQ(seen().calls[1].inode, 0u) << "of no folder";
  EXPECT_EQ(seen().calls[1].unknown, Causes());
  EXPECT_EQ(seen().calls[2].inode, 0u);
}

TEST_F(CallAssemblerTest, APathThatIsTooLongIsBroken) {
  for (int i = 0; i < 100; ++i) {
    Take(PieceOf(kThread, 1, 0, std::string(63, 'x'), kRawFileName));
  }
  Take(CallOf(kThread, 1, 9, 0x1000, 100));
  ASSERT_EQ(seen().calls.size(), 1u);
  EXPECT_TRUE(seen().calls[0].unknown.Has(kRawBroken));
}

TEST_F(CallAssemblerTest, PiecesGoWithTheirCall) {
  Take(PieceOf(kThread, 1, 0x1000, "hello"));
  Take(PieceOf(8, 1, 0x5000, "another thread"));
  Take(PieceOf(kThread, 1, 0x2000, "world"));
  Take(CallOf(kThread, 1, 0, 10, 2));
  Take(CallOf(kThread, 2, 39, 7));
  ASSERT_EQ(seen().calls.size(), 2u);
  ASSERT_EQ(seen().calls[0].writes.size(), 2u);
  EXPECT_EQ(seen().calls[0].writes[1].addr, 0x2000u);
  EXPECT_EQ(seen().calls[0].writes[1].bytes[0], std::byte{'w'});
  EXPECT_TRUE(seen().calls[0].unknown.empty());
  EXPECT_TRUE(seen().calls[1].writes.empty());
  EXPECT_EQ(assembler_.broken(), 0u);
}

TEST_F(CallAssemblerTest, OutputIsADigestIfAllOfItIsThere) {
  for (const int64_t result : {10, 11}) {
    const auto sequence = static_cast<uint64_t>(result - 9);
    Take(PieceOf(kThread, sequence, 0x1000, "hello", kRawOutput));
    Take(PieceOf(kThread, sequence, 0x2000, "world", kRawOutput));
    Take(CallOf(kThread, sequence, 1, result, 2));
  }
  const std::string_view text = "helloworld";
  EXPECT_EQ(seen().calls[0].output_digest,
            Digest(std::as_bytes(std::span(text))));
  EXPECT_EQ(seen().calls[0].output_bytes, 10u);
  EXPECT_TRUE(seen().calls[0].writes.empty());
  EXPECT_EQ(seen().calls[1].output_digest, std::nullopt);
  EXPECT_EQ(seen().calls[1].output_bytes, 0u);
}

TEST_F(CallAssemblerTest, PiecesOfACallThatWasLostAreDropped) {
  Take(PieceOf(kThread, 1, 0x1000, "lost"));
  RawCall next = CallOf(kThread, 2, 39, 7);
  next.head.lost = 1;
  next.head.causes = 1u << kRawRingFull;
  Take(next);
  ASSERT_EQ(seen().calls.size(), 1u);
  EXPECT_TRUE(seen().calls[0].writes.empty());
  EXPECT_EQ(seen().calls[0].lost_before, 1u);
  EXPECT_TRUE(sink_.causes.Has(kRawRingFull));
  EXPECT_EQ(assembler_.broken(), 0u);
}

TEST_F(CallAssemblerTest, NumbersThatDoNotAddUpAreALoss) {
  Take(CallOf(kThread, 1, 39, 7));
  Take(CallOf(kThread, 4, 39, 7));  // 2 and 3 are nowhere
  EXPECT_EQ(seen().calls[1].lost_before, 2u);
  Take(CallOf(kThread, 4, 39, 7));  // again
  EXPECT_EQ(seen().calls[2].lost_before, 1u);
  EXPECT_TRUE(sink_.causes.Has(kRawBroken));
  EXPECT_EQ(assembler_.broken(), 2u);
}

TEST_F(CallAssemblerTest, MissingOrTooManyPiecesMakeTheCallUnknown) {
  Take(PieceOf(kThread, 1, 0x1000, "one"));
  Take(CallOf(kThread, 1, 0, 10, 2));
  EXPECT_TRUE(seen().calls[0].unknown.Has(kRawBroken));
  const std::string text(CLEW_RAW_PIECE_SMALL, 'x');
  constexpr uint32_t kPieces = 17;  // 1088 bytes, more than 1000 and one more
  for (uint32_t i = 0; i < kPieces; ++i) {
    Take(PieceOf(kThread, 2, 0x1000, text));
  }
  Take(CallOf(kThread, 2, 0, 10, kPieces));
  EXPECT_TRUE(seen().calls[1].unknown.Has(kRawBroken));
  Take(CallOf(kThread, 3, 0, 10, 0));
  EXPECT_TRUE(seen().calls[2].unknown.empty());
}

// Source of the table: arch/x86/kernel/signal.c.
TEST_F(CallAssemblerTest, InterruptedCallsHaveTheResultThatTheProgramSees) {
  struct Case {
    int64_t left;
    int next;  // 0: a call, 1: a handler, 2: a handler with SA_RESTART
    int64_t seen;
  };
  constexpr int64_t kEintr = -EINTR;
  uint64_t sequence = 0;
  size_t calls = 0;
  for (const Case& c : std::initializer_list<Case>{{-512, 0, -512},
                                                   {-512, 1, kEintr},
                                                   {-512, 2, -512},
                                                   {-513, 0, -512},
                                                   {-513, 1, -512},
                                                   {-514, 0, -512},
                                                   {-514, 2, kEintr},
                                                   {-516, 0, -512},
                                                   {-516, 1, kEintr},
                                                   {-516, 2, kEintr}}) {
    SCOPED_TRACE(c.left * 10 - c.next);
    Take(CallOf(kThread, ++sequence, 0, c.left));
    EXPECT_EQ(seen().calls.size(), calls) << "not before what is next";
    // A signal without a handler decides nothing.
    Take(SignalOf(kThread, ++sequence, 0));
    EXPECT_EQ(seen().calls.size(), calls);
    if (c.next == 0) {
      Take(CallOf(kThread, ++sequence, 39, 1));
    } else {
      Take(SignalOf(kThread, ++sequence, 0x1000, c.next == 2 ? kSaRestart : 0));
    }
    ASSERT_GT(seen().calls.size(), calls);
    EXPECT_EQ(seen().calls[calls].result, c.seen);
    EXPECT_TRUE(seen().calls[calls].unknown.empty());
    calls = seen().calls.size();
  }
}

TEST_F(CallAssemblerTest, WhatNobodyCanTellOfAnInterruptedCallIsUnknown) {
  Take(CallOf(kThread, 1, 0, -512));
  RawCall next = CallOf(kThread, 3, 39, 1);
  next.head.lost = 1;
  next.head.causes = 1u << kRawBudget;
  Take(next);
  EXPECT_TRUE(seen().calls[0].unknown.Has(kRawInterrupted));
  Take(CallOf(kThread, 4, 0, -512));
  Take(EndOf(kThread, 5));
  EXPECT_EQ(seen().calls[2].result, std::nullopt) << "killed in it";
  EXPECT_TRUE(seen().calls[2].unknown.empty());
  EXPECT_TRUE(seen().ended);
}

TEST_F(CallAssemblerTest, AnInterruptedCallHasNotReturnedWhenTheRecordingEnds) {
  Take(CallOf(kThread, 1, 7, -516));
  RawThread rest = {};
  rest.process = 5;
  ASSERT_TRUE(assembler_.Finish(kThread, rest, sink_));
  ASSERT_EQ(seen().calls.size(), 1u);
  EXPECT_EQ(seen().calls[0].result, std::nullopt);
  EXPECT_TRUE(seen().calls[0].unknown.empty());
}

TEST_F(CallAssemblerTest, TheRestIsTold) {
  Take(CallOf(kThread, 1, 0, -512));
  RawThread rest = {};
  rest.process = 5;
  rest.number = 202;
  rest.in_call = 1;
  rest.lost = 3;
  rest.causes = 1u << kRawRingFull;
  ASSERT_TRUE(assembler_.Finish(kThread, rest, sink_));
  ASSERT_EQ(seen().calls.size(), 2u);
  EXPECT_TRUE(seen().calls[0].unknown.Has(kRawInterrupted));
  EXPECT_EQ(seen().calls[1].lost_before, 3u);
  EXPECT_EQ(seen().calls[1].number, 202u);
  EXPECT_EQ(seen().calls[1].result, std::nullopt);
}

TEST_F(CallAssemblerTest, AThreadMayGetTheNumberOfOneThatEnded) {
  for (int i = 0; i < 3; ++i) {
    Take(CallOf(kThread, 1, 39, 7));
    Take(CallOf(kThread, 2, 39, 7));
    Take(EndOf(kThread, 3));
  }
  EXPECT_EQ(seen().calls.size(), 6u);
  EXPECT_EQ(seen().lost, 0u);
  EXPECT_EQ(assembler_.broken(), 0u);
}

// Goal: whatever of a thread's units is lost, handed on and lost are all.
TEST_F(CallAssemblerTest, HandedOnAndLostAreAll) {
  const auto seed =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  SCOPED_TRACE(seed);
  Random random(seed);
  uint64_t sequence = 0;
  uint32_t lost = 0;
  for (int i = 0; i < 20000; ++i) {
    ++sequence;
    const uint32_t pieces = static_cast<uint32_t>(random.Below(3));
    for (uint32_t p = 0; p < pieces; ++p) {
      Take(PieceOf(kThread, sequence, 0x1000, "piece"));
    }
    if (random.Below(3) == 0) {
      ++lost;
      continue;
    }
    const int64_t result = random.Below(5) == 0 ? -512 : 5;
    RawCall call = CallOf(kThread, sequence, 0, result, pieces);
    call.head.lost = lost;
    call.head.causes = lost > 0 ? 1u << kRawRingFull : 0;
    lost = 0;
    Take(call);
  }
  RawThread rest = {};
  rest.process = 5;
  rest.lost = lost;
  rest.causes = lost > 0 ? 1u << kRawRingFull : 0;
  ASSERT_TRUE(assembler_.Finish(kThread, rest, sink_));
  EXPECT_EQ(seen().units(), sequence);
  EXPECT_EQ(assembler_.broken(), 0u);
}

}  // namespace
}  // namespace clew::recorder::bpf
