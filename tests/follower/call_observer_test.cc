// Goal: a call that reads what it read in the recorded run is observed with all
// of that; one that does not, with a bounded part, whatever its lengths say.
// Method: writev with lists in a memory made here, of lengths drawn at random
// among them such as no program has.
#include "follower/kernel/call_observer.h"

#include <asm/unistd_64.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "common/digest.h"
#include "common/linux/syscall_reads.h"
#include "follower/kernel/machine_memory.h"

namespace clew::follower {
namespace {

constexpr uint64_t kListAt = 0x10000;
constexpr uint64_t kDataAt = 0x20000;
constexpr uint64_t kDataBytes = 8u << 20;
constexpr uint64_t kUnlikeBytesMax = 1u << 16;  // what the header promises

class Bytes final : public machine::AccessObserver {
 public:
  bool OnAccess(const machine::ObservedAccess& access) override {
    EXPECT_EQ(access.kind, AccessKind::kRead);
    EXPECT_GT(access.size_bytes, 0u);
    sum += access.size_bytes;
    return false;
  }
  uint64_t sum = 0;
};

class CallObserverTest : public testing::Test {
 protected:
  CallObserverTest() {
    memory_.Map(kListAt, kPageBytes, kProtRead | kProtWrite);
    memory_.Map(kDataAt, kDataBytes, kProtRead | kProtWrite);
  }

  SyscallInput Writev(const std::vector<std::array<uint64_t, 2>>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      EXPECT_TRUE(memory_.Store(kListAt + 16 * i, list[i][0]));
      EXPECT_TRUE(memory_.Store(kListAt + 16 * i + 8, list[i][1]));
    }
    SyscallInput call;
    call.number = __NR_writev;
    call.args = {1, kListAt, list.size()};
    const MachineMemory bytes(memory_);
    call.read_digest =
        DigestOfReads(ReadsOfSyscall(call.number, call.args, bytes), bytes);
    return call;
  }
  uint64_t Observed(const SyscallInput& call) {
    Bytes bytes;
    ObserveCall(bytes, memory_, 0, 0, call);
    return bytes.sum;
  }

  machine::Memory memory_;
};

TEST_F(CallObserverTest, WhatWasReadIsObservedInWhole) {
  Random random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::array<uint64_t, 2>> list(1 + random.Below(8));
    uint64_t wanted = 16 * list.size();
    for (auto& [addr, size] : list) {
      addr = kDataAt + random.Below(kDataBytes / 2);
      size = random.Below(kDataBytes / 2);
      wanted += size;
    }
    const SyscallInput call = Writev(list);
    ASSERT_TRUE(call.read_digest.has_value());
    EXPECT_EQ(Observed(call), wanted) << "trial " << trial;
  }
}

TEST_F(CallObserverTest, WhatWasNotReadIsBounded) {
  Random random(2);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::array<uint64_t, 2>> list(1 + random.Below(8));
    uint64_t wanted = 16 * list.size();
    for (auto& [addr, size] : list) {
      addr = random.Below(2) == 0 ? random.Next() : kDataAt;
      size = random.Below(3) == 0 ? random.Below(100) : random.Next() >> 30;
      wanted += std::min(size, kSyscallReadBytesMax);
    }
    SyscallInput call = Writev(list);
    call.read_digest = call.read_digest.value_or(0) ^ 1;
    call.result = static_cast<int64_t>(random.Below(100'000)) - 100;
    const uint64_t limit =
        kUnlikeBytesMax +
        static_cast<uint64_t>(std::max<int64_t>(*call.result, 0));
    EXPECT_EQ(Observed(call), std::min(wanted, limit)) << "trial " << trial;
  }
}

}  // namespace
}  // namespace clew::follower
