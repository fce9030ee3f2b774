// Goal: start.pb gives memory in order and each thread its registers, of a new
// process and of one that was attached to; what its ranges forbid is refused by
// name.
// Method: examples, one for each range.

#include "bundle/convert_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace clew::bundle {
namespace {

using testing::HasSubstr;

constexpr size_t kXsaveBytes = 832;

// Works on Start and StartThread.
template <class Thread>
void Fill(Thread& thread, int32_t number) {
  thread.set_thread(number);
  for (uint64_t i = 0; i < 16; ++i) {
    thread.add_gpr(1000 * static_cast<uint64_t>(number) + i);
  }
  thread.set_rip(0x401000 + static_cast<uint64_t>(number));
  thread.set_rflags(0x246);
  thread.set_fs_base(0x7000);
  thread.set_gs_base(0x8000);
  thread.set_rseq_addr(0x9000 + static_cast<uint64_t>(number));
}

pb::Start Attached() {
  pb::Start start;
  Fill(start, 7);
  start.set_xsave(std::string(kXsaveBytes, 'a'));
  start.set_initial_stack(0x7ffe0000);
  for (const uint64_t addr : {0x2000u, 0x1000u}) {
    pb::Segment* segment = start.add_segments();
    segment->set_addr(addr);
    segment->set_size_bytes(4096);
    segment->set_prot(3);
    segment->set_data("abc");
  }
  Fill(*start.add_other_threads(), 8);
  Fill(*start.add_other_threads(), 9);
  start.mutable_other_threads(1)->set_xsave(std::string(kXsaveBytes, 'b'));
  return start;
}

TEST(ConvertStartTest, EveryThreadHasItsRegisters) {
  const auto start = ToStart(Attached(), "start.pb");
  ASSERT_TRUE(start.has_value()) << start.error().message;
  ASSERT_EQ(start->others.size(), 2u);
  int32_t number = 7;
  for (const StartThread* const thread :
       {&start->first, &start->others[0], &start->others[1]}) {
    EXPECT_EQ(thread->thread, Tid(number));
    EXPECT_EQ(thread->gpr[kRsp], 1000u * static_cast<uint32_t>(number) + kRsp);
    EXPECT_EQ(thread->rip,
              TraceeAddr(0x401000u + static_cast<uint32_t>(number)));
    EXPECT_EQ(thread->rflags, 0x246u);
    EXPECT_EQ(thread->fs_base, 0x7000u);
    EXPECT_EQ(thread->gs_base, 0x8000u);
    EXPECT_EQ(thread->rseq_addr, 0x9000u + static_cast<uint32_t>(number));
    ++number;
  }
  EXPECT_EQ(start->first.xsave.size(), kXsaveBytes);
  EXPECT_TRUE(start->others[0].xsave.empty());
  EXPECT_EQ(start->others[1].xsave.at(5), std::byte{'b'});
  EXPECT_EQ(start->initial_stack, TraceeAddr(0x7ffe0000));
}

TEST(ConvertStartTest, SegmentsAreInOrder) {
  const auto start = ToStart(Attached(), "start.pb");
  ASSERT_TRUE(start.has_value()) << start.error().message;
  ASSERT_EQ(start->segments.size(), 2u);
  EXPECT_EQ(start->segments[0].addr, TraceeAddr(0x1000));
  EXPECT_EQ(start->segments[0].bytes.size(), 3u);
  EXPECT_EQ(start->segments[1].addr, TraceeAddr(0x2000));
}

TEST(ConvertStartTest, ANewProcessHasItsStackAtItsStackPointer) {
  pb::Start message;
  Fill(message, 7);
  const auto start = ToStart(message, "start.pb");
  ASSERT_TRUE(start.has_value()) << start.error().message;
  EXPECT_EQ(start->initial_stack, TraceeAddr(7000 + kRsp));
}

TEST(ConvertStartTest, WhatTheCpuToldIsThereOrNot) {
  pb::Start start = Attached();
  EXPECT_FALSE(ToStart(start, "start.pb")->told_cpu);
  pb::ToldCpu& cpu = *start.mutable_told_cpu();
  cpu.set_xcr0(7);
  for (const uint32_t sub_leaf : {2u, 0u}) {
    pb::CpuidLeaf& leaf = *cpu.add_leaves();
    leaf.set_leaf(0xd);
    leaf.set_sub_leaf(sub_leaf);
    leaf.set_eax(10 + sub_leaf);
    leaf.set_ebx(20 + sub_leaf);
    leaf.set_ecx(30 + sub_leaf);
    leaf.set_edx(40 + sub_leaf);
  }
  const auto converted = ToStart(start, "start.pb");
  ASSERT_TRUE(converted) << converted.error().message;
  ASSERT_TRUE(converted->told_cpu);
  EXPECT_EQ(converted->told_cpu->xcr0, 7u);
  for (const uint32_t sub_leaf : {0u, 2u}) {
    const x86::CpuidResult told =
        converted->told_cpu->cpuid.Find(0xd, sub_leaf);
    EXPECT_EQ(told.eax, 10 + sub_leaf);
    EXPECT_EQ(told.ebx, 20 + sub_leaf);
    EXPECT_EQ(told.ecx, 30 + sub_leaf);
    EXPECT_EQ(told.edx, 40 + sub_leaf);
  }
}

TEST(ConvertStartTest, WhatIsOutOfRangeIsNamed) {
  struct Wrong {
    std::function<void(pb::Start&)> change;
    const char* told;
  };
  for (const auto& [change, told] :
       {Wrong{[](pb::Start& start) { start.set_x87_control(0x10000); },
              "x87_control is 0x10000"},
        Wrong{[](pb::Start& start) { start.add_gpr(0); },
              "thread 7: gpr has 17 registers, wanted 16"},
        Wrong{[](pb::Start& start) {
                start.mutable_other_threads(0)->mutable_gpr()->RemoveLast();
              },
              "thread 8: gpr has 15 registers, wanted 16"},
        Wrong{[](pb::Start& start) { start.set_xsave(std::string(575, 'x')); },
              "thread 7: xsave has 575 bytes, wanted 576 to 65536"},
        Wrong{[](pb::Start& start) {
                start.mutable_other_threads(1)->set_xsave(
                    std::string(65537, 'x'));
              },
              "thread 9: xsave has 65537 bytes, wanted 576 to 65536"},
        Wrong{[](pb::Start& start) {
                start.mutable_segments(0)->set_addr(0x1000);
              },
              "overlap"},
        Wrong{[](pb::Start& start) {
                start.mutable_segments(0)->set_addr(0x1001);
              },
              "whole pages"},
        Wrong{[](pb::Start& start) {
                start.mutable_segments(0)->set_addr(UINT64_MAX - 4095);
                start.mutable_segments(0)->set_size_bytes(8192);
              },
              "whole pages"},
        Wrong{[](pb::Start& start) {
                start.mutable_segments(0)->set_data(std::string(4097, 'x'));
              },
              "of data"}}) {
    pb::Start message = Attached();
    change(message);
    const auto start = ToStart(message, "start.pb");
    ASSERT_FALSE(start.has_value()) << told;
    EXPECT_EQ(start.error().code, ErrorCode::kCorruptInput);
    EXPECT_THAT(start.error().message, HasSubstr(told));
    EXPECT_THAT(start.error().message, HasSubstr("start.pb: "));
  }
}

}  // namespace
}  // namespace clew::bundle
