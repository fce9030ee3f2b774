// Goal: what a program gets from its system calls is what is handed on: every
// call, in order, with its result and all memory that the kernel wrote; what is
// not handed on is counted, at its place.
// Method: real programs on the kernel that runs the test, which write down
// themselves what they got. Oracle: applying the recorded writes to a thread's
// memory before a call gives its memory after it.
#include <asm/unistd_64.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "common/digest.h"
#include "common/file.h"
#include "tests/recorder/bpf/truth.h"
#include "tests/recorder/bpf/watched_program.h"

namespace clew::recorder::bpf {
namespace {

struct TrueCall {
  TruthCall call;
  std::span<const std::byte> before;
  std::span<const std::byte> after;
};

std::vector<TrueCall> ReadTruth(std::span<const std::byte> bytes) {
  constexpr size_t kRecord = sizeof(TruthCall) + 2 * TRUTH_ARENA_BYTES;
  std::vector<TrueCall> calls;
  for (size_t at = 0; at + kRecord <= bytes.size(); at += kRecord) {
    TrueCall call;
    std::memcpy(&call.call, bytes.data() + at, sizeof(call.call));
    call.before = bytes.subspan(at + sizeof(TruthCall), TRUTH_ARENA_BYTES);
    call.after = bytes.subspan(at + sizeof(TruthCall) + TRUTH_ARENA_BYTES,
                               TRUTH_ARENA_BYTES);
    calls.push_back(call);
  }
  return calls;
}

bool TellsTruth(const SeenCall& call) {
  return call.number == __NR_write && call.args[0] >= TRUTH_FD_FIRST;
}

// What a thread did between its first and last call of the truth.
std::vector<const SeenCall*> CallsOf(const KeepingSink::Thread& thread) {
  std::vector<const SeenCall*> calls;
  const auto first = std::ranges::find_if(thread.calls, TellsTruth);
  for (auto at = first == thread.calls.begin() ? first : first - 1;
       at != thread.calls.end(); ++at) {
    if (!TellsTruth(*at)) {
      calls.push_back(&*at);
    }
  }
  return calls;
}

// Nothing outside the arena is looked at: there is no truth about it.
std::vector<std::byte> Applied(const TrueCall& truth, const SeenCall& seen) {
  std::vector<std::byte> memory(truth.before.begin(), truth.before.end());
  for (const SeenWrite& write : seen.writes) {
    for (size_t i = 0; i < write.bytes.size(); ++i) {
      const uint64_t offset = write.addr + i - truth.call.arena;
      if (offset < memory.size()) {
        memory[offset] = write.bytes[i];
      }
    }
  }
  return memory;
}

void Compare(const TrueCall& truth, const SeenCall& seen) {
  ASSERT_EQ(seen.number, truth.call.number);
  for (size_t i = 0; i < seen.args.size(); ++i) {
    EXPECT_EQ(seen.args[i], truth.call.args[i]) << "argument " << i;
  }
  EXPECT_EQ(seen.result, truth.call.result);
  EXPECT_TRUE(seen.unknown.empty()) << ToString(seen.unknown);
  const auto memory = Applied(truth, seen);
  const auto wrong = std::ranges::mismatch(memory, truth.after);
  EXPECT_TRUE(wrong.in1 == memory.end())
      << "byte " << wrong.in1 - memory.begin() << " of the arena differs";
}

// Room for all that a test program does, however seldom the ring is emptied.
InputOptions Roomy() {
  return {.ring_bytes = 128 << 20, .bytes_per_second = uint64_t{8} << 30};
}

TEST(InputSourceTest, EveryCallHasItsResultAndAllThatTheKernelWrote) {
  CLEW_NEEDS_BPF();
  const ScratchFolder folder;
  KeepingSink sink;
  const auto watched = Watch(
      {TraceeProgram("recorder_bpf_tracee"), folder.path()}, Roomy(), sink);
  ASSERT_TRUE(watched) << watched.error().message;
  ASSERT_EQ(watched->status, 0);
  EXPECT_EQ(watched->counts.lost_total(), 0u);
  EXPECT_EQ(watched->counts.broken, 0u);
  EXPECT_EQ(watched->counts.units, watched->counts.reported);
  size_t compared = 0;
  for (int i = 0; i < 4; ++i) {
    const auto bytes =
        ReadWholeFile(folder.path() + "/truth." + std::to_string(i));
    ASSERT_TRUE(bytes) << bytes.error().message;
    const auto truth = ReadTruth(*bytes);
    ASSERT_GT(truth.size(), 100u);
    const auto& thread =
        sink.threads.at(static_cast<int32_t>(truth[0].call.thread));
    EXPECT_TRUE(thread.ended);
    const auto seen = CallsOf(thread);
    ASSERT_GE(seen.size(), truth.size());
    for (size_t n = 0; n < truth.size(); ++n) {
      SCOPED_TRACE("thread " + std::to_string(i) + " call " +
                   std::to_string(n) + " number " +
                   std::to_string(truth[n].call.number));
      ASSERT_NO_FATAL_FAILURE(Compare(truth[n], *seen[n]));
      ++compared;
    }
  }
  RecordProperty("calls_compared", static_cast<int>(compared));
}

}  // namespace
}  // namespace clew::recorder::bpf
