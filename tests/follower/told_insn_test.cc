// Goal: where the input log has no results of instructions, CPUID and XGETBV
// give what the start state says, RDTSC and RDTSCP a time that the trace
// allows; nobody makes up the rest. Method: each instruction, by its bytes.
#include "follower/told_insn.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace clew::follower {
namespace {

using V = std::vector<uint8_t>;
const V kCpuid = {0x0f, 0xa2};
const V kXgetbv = {0x0f, 0x01, 0xd0};
const V kRdtsc = {0x0f, 0x31};
const V kRdtscp = {0x0f, 0x01, 0xf9};
const V kRdrand = {0x48, 0x0f, 0xc7, 0xf0};

class ToldInsnTest : public testing::Test {
 protected:
  void SetUp() override {
    cpu_.cpuid = x86::CpuidTable(
        {{.leaf = 7,
          .sub_leaf = 0,
          .told = {.eax = 1, .ebx = 0x80000002, .ecx = 3, .edx = 4}}});
    cpu_.xcr0 = 0x1'0000'00e7;
    for (size_t i = 0; i < registers_.gpr.size(); ++i) {
      registers_.gpr[i] = 0xffff'ffff'0000'0000 + i;
    }
    registers_.rip = 0x1000;
    registers_.rflags = 0x246;
    block_.time = {TscTicks(0x5'0000'0007), TscTicks(0x5'0000'0100)};
  }
  std::optional<InsnInput> Result(const V& insn) {
    return ToldResult(cpu_, std::as_bytes(std::span(insn)), registers_, block_,
                      CoreId(3));
  }

  ToldCpu cpu_;
  machine::Registers registers_;
  StreamBlock block_;
};

TEST_F(ToldInsnTest, CpuidGivesWhatItTold) {
  registers_.gpr[kRax] = 0xffff'ffff'0000'0007;
  registers_.gpr[kRcx] = 0xffff'ffff'0000'0000;
  const InsnInput told = Result(kCpuid).value_or(InsnInput());
  EXPECT_EQ(told.ip.as_int(), 0x1000u);
  EXPECT_EQ(told.rax, 1u) << "the upper halves are cleared";
  EXPECT_EQ(told.rbx, 0x80000002u);
  EXPECT_EQ(told.rcx, 3u);
  EXPECT_EQ(told.rdx, 4u);
  EXPECT_EQ(told.rflags, 0x246u);
  registers_.gpr[kRax] = 8;
  EXPECT_EQ(Result(kCpuid).value_or(told).rax, 0u);
}

TEST_F(ToldInsnTest, XgetbvGivesXcr0) {
  registers_.gpr[kRcx] = 0;
  const InsnInput told = Result(kXgetbv).value_or(InsnInput());
  EXPECT_EQ(told.rax, 0xe7u);
  EXPECT_EQ(told.rdx, 1u);
  EXPECT_EQ(told.rbx, registers_.gpr[kRbx]);
  registers_.gpr[kRcx] = 1;
  EXPECT_FALSE(Result(kXgetbv)) << "which components are in use";
}

TEST_F(ToldInsnTest, TimeIsTheEarliestThatTheTraceAllows) {
  for (const V& insn : {kRdtsc, kRdtscp}) {
    const InsnInput told = Result(insn).value_or(InsnInput());
    EXPECT_EQ(told.rdx << 32 | told.rax, 0x5'0000'0007u);
    EXPECT_EQ(told.rbx, registers_.gpr[kRbx]);
  }
  EXPECT_EQ(Result(kRdtsc).value_or(InsnInput()).rcx, registers_.gpr[kRcx]);
  EXPECT_EQ(Result(kRdtscp).value_or(InsnInput()).rcx, 3u) << "the core";
}

TEST_F(ToldInsnTest, WhatNobodyKnowsIsNotMadeUp) {
  EXPECT_FALSE(Result(kRdrand));
  EXPECT_FALSE(Result({0x90}));
  EXPECT_FALSE(Result({}));
}

}  // namespace
}  // namespace clew::follower
