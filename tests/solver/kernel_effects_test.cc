// Goal: what the kernel did to memory that another thread uses, at a moment
// that is not searched over, is told; what is ordered by the creation of
// threads, or nobody else touches, is not. Method: scripted inputs of two
// threads; each effect with and without a touch by the other one, before and
// after its creation.
#include "solver/kernel_effects.h"

#include <gtest/gtest.h>

#include <map>

namespace clew::solver {
namespace {

using Inputs = std::map<Tid, std::vector<InputRecord>>;

constexpr Tid kMain(10);
constexpr Tid kChild(11);
constexpr uint64_t kRange = 0x10000;
constexpr uint64_t kSize = 0x2000;

class NoStreams final : public StreamSource {
 public:
  const std::vector<Tid>& threads() const override { return threads_; }
  const std::vector<Slice>& slices() const override { return slices_; }
  Result<std::optional<StreamItem>> Next(Tid) override { return std::nullopt; }

 private:
  std::vector<Tid> threads_ = {kMain, kChild};
  std::vector<Slice> slices_;
};

class MappedInputs final : public InputSource {
 public:
  explicit MappedInputs(Inputs inputs) : inputs_(std::move(inputs)) {}
  Result<std::optional<InputRecord>> Next(Tid thread) override {
    const auto& records = inputs_[thread];
    size_t& next = next_[thread];
    return next == records.size() ? std::optional<InputRecord>()
                                  : records[next++];
  }

 private:
  Inputs inputs_;
  std::map<Tid, size_t> next_;
};

SyscallInput Call(uint64_t number, std::array<uint64_t, 6> args,
                  int64_t result = 0) {
  SyscallInput call;
  call.number = number;
  call.args = args;
  call.result = result;
  return call;
}

SyscallInput Clone() { return Call(56, {}, kChild.as_int()); }
SyscallInput Munmap() { return Call(11, {kRange, kSize}); }

SyscallInput Read() {
  SyscallInput call = Call(0, {3, kRange, 8}, 8);
  call.writes = {{TraceeAddr(kRange), std::vector<std::byte>(8)}};
  return call;
}

// What is told where `thread` (0: main) touches the second page of the range.
std::vector<std::string> Told(const Inputs& inputs, uint32_t thread) {
  NoStreams streams;
  MappedInputs source(inputs);
  follower::Tape tape(streams, source);
  WordTable words(2, 0);
  for (const uint64_t addr : {kRange, kRange + 0x1000}) {
    words.Note({.at = {thread, 1},
                .word = WordOf(addr),
                .kind = AccessKind::kRead,
                .lo_tick = 0,
                .hi_tick = 1});
  }
  return UnorderedKernelEffects(tape, words).value();
}

TEST(KernelEffectsTest, MemoryThatAnotherThreadUsesIsTold) {
  const SyscallInput calls[] = {
      Munmap(),
      Call(25, {kRange, kSize, kSize}, 0x90000),  // mremap
      Call(9, {kRange, kSize, 3, 0x32}, kRange),  // mmap, MAP_FIXED
      Call(10, {kRange, kSize, 1}),               // mprotect, read
      Call(28, {kRange, kSize, 4}),               // MADV_DONTNEED
      Read(),
  };
  for (const SyscallInput& call : calls) {
    SCOPED_TRACE(call.number);
    const Inputs late = {{kMain, {Clone(), call}}};
    EXPECT_EQ(Told(late, 1).size(), 1u);
    const Inputs early = {{kMain, {call, Clone()}}};
    EXPECT_EQ(Told(early, 1).size(), 0u);
  }
}

TEST(KernelEffectsTest, WhatAThreadDoesToItsOwnMemoryIsOrdered) {
  EXPECT_EQ(Told({{kMain, {Clone(), Munmap(), Read()}}}, 0).size(), 0u);
  EXPECT_EQ(Told({{kMain, {Clone()}}, {kChild, {Munmap()}}}, 1).size(), 0u);
  EXPECT_EQ(Told({{kMain, {Clone()}}, {kChild, {Munmap()}}}, 0).size(), 1u);
}

// The machine keeps what the kernel discards.
TEST(KernelEffectsTest, DiscardedMemoryIsToldUnlessTheThreadExits) {
  const SyscallInput discard = Call(28, {kRange, kSize, 4});
  const SyscallInput exit = Call(60, {});
  EXPECT_EQ(Told({{kMain, {Clone(), discard, Read()}}}, 0).size(), 1u);
  EXPECT_EQ(Told({{kMain, {Clone(), discard, exit}}}, 0).size(), 0u);
}

TEST(KernelEffectsTest, NewMemoryAndFailedCallsAreNoEffects) {
  const SyscallInput calls[] = {
      Call(9, {0, kSize, 3, 0x22}, kRange),  // mmap where the kernel likes
      Call(10, {kRange, kSize, 3}),          // mprotect, read and write
      Call(11, {kRange, kSize}, -22),        // munmap: EINVAL
      Call(28, {kRange, kSize, 14}),         // MADV_HUGEPAGE
      Call(12, {0}, kRange),                 // brk grows
  };
  for (const SyscallInput& call : calls) {
    SCOPED_TRACE(call.number);
    EXPECT_EQ(Told({{kMain, {Clone(), call, Clone()}}}, 1).size(), 0u);
  }
  const Inputs shrinks = {
      {kMain,
       {Clone(), Call(12, {0}, kRange + kSize), Call(12, {kRange}, kRange)}}};
  EXPECT_EQ(Told(shrinks, 1).size(), 1u);
}

}  // namespace
}  // namespace clew::solver
