// Goal: what a process that records tells another arrives whole, an error as
// well; bytes that are something else are an error and no outcome, and never
// more than that.
// Method: an outcome with every field set, there and back; each of its
// beginnings, and each of its bytes changed.
#include "recorder/software/answer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clew::recorder {
namespace {

RecordOutcome FullOutcome() {
  return {
      .failure = {.kind = FailureKind::kSignal,
                  .signal = 11,
                  .exit_status = -1,
                  .thread = Tid(4711),
                  .ip = TraceeAddr(0x401000),
                  .addr = TraceeAddr(~uint64_t{0})},
      .kept = true,
      .dropped = "too large",
      .insns = 1,
      .handovers = 2,
      .switches = 3,
      .pt_bytes = 4,
      .ring = {.halves = 10, .stopped_us = 11, .stopped_us_max = 12},
      .seed = ~uint64_t{0},
      .stopped_ms = 5,
      .inputs_unknown = 6,
      .deviations = {"one", "", std::string("a\0b\n", 4)},
      .unknown_insns = {{.insn = {.ip = TraceeAddr(7),
                                  .bytes = {std::byte{0x0f}, std::byte{0xff}}},
                         .place = "libfoo.so+0x7"},
                        {.insn = {}, .place = {}}},
      .left = {8, 9},
      .ended_ns = 13,
      .process = 14,
      .child = "worker 1",
      .unrecorded = {"process 15: refused", ""}};
}

void ExpectEqual(const RecordOutcome& a, const RecordOutcome& b) {
  EXPECT_EQ(a.failure, b.failure);
  EXPECT_EQ(a.kept, b.kept);
  EXPECT_EQ(a.dropped, b.dropped);
  EXPECT_EQ(a.insns, b.insns);
  EXPECT_EQ(a.handovers, b.handovers);
  EXPECT_EQ(a.switches, b.switches);
  EXPECT_EQ(a.pt_bytes, b.pt_bytes);
  EXPECT_EQ(a.ring, b.ring);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.stopped_ms, b.stopped_ms);
  EXPECT_EQ(a.inputs_unknown, b.inputs_unknown);
  EXPECT_EQ(a.deviations, b.deviations);
  ASSERT_EQ(a.unknown_insns.size(), b.unknown_insns.size());
  for (size_t i = 0; i < a.unknown_insns.size(); ++i) {
    EXPECT_EQ(a.unknown_insns[i].insn.ip, b.unknown_insns[i].insn.ip);
    EXPECT_EQ(a.unknown_insns[i].insn.bytes, b.unknown_insns[i].insn.bytes);
    EXPECT_EQ(a.unknown_insns[i].place, b.unknown_insns[i].place);
  }
  EXPECT_EQ(a.left, b.left);
  EXPECT_EQ(a.ended_ns, b.ended_ns);
  EXPECT_EQ(a.process, b.process);
  EXPECT_EQ(a.child, b.child);
  EXPECT_EQ(a.unrecorded, b.unrecorded);
}

TEST(AnswerTest, AnOutcomeArrivesWithAllItsFields) {
  for (const RecordOutcome& outcome : {FullOutcome(), RecordOutcome()}) {
    const auto read = ParseAnswer(FormatAnswer(outcome));
    ASSERT_TRUE(read.has_value()) << read.error().message;
    ExpectEqual(*read, outcome);
  }
}

TEST(AnswerTest, AnErrorArrives) {
  const Result<RecordOutcome> error = std::unexpected(Error{
      .code = ErrorCode::kLimit, .message = "too \"long\"", .sys_errno = 5});
  const auto read = ParseAnswer(FormatAnswer(error));
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, ErrorCode::kLimit);
  EXPECT_EQ(read.error().message, "too \"long\"");
  EXPECT_EQ(read.error().sys_errno, 5);
}

TEST(AnswerTest, ABeginningOrMoreThanAllIsAnError) {
  std::vector<std::byte> bytes = FormatAnswer(FullOutcome());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto read = ParseAnswer(std::span(bytes).first(size));
    ASSERT_FALSE(read.has_value()) << size;
    EXPECT_EQ(read.error().code, ErrorCode::kSystem) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(ParseAnswer(bytes).has_value());
}

TEST(AnswerTest, AChangedByteIsNoMoreThanAnError) {
  const std::vector<std::byte> bytes = FormatAnswer(FullOutcome());
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const std::byte changed :
         {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
      std::vector<std::byte> wrong = bytes;
      wrong[at] ^= changed;
      const auto read = ParseAnswer(wrong);
      if (at > 0 && !read) {  // the first one says which of both it is
        EXPECT_EQ(read.error().code, ErrorCode::kSystem) << at;
      }
    }
  }
}

}  // namespace
}  // namespace clew::recorder
