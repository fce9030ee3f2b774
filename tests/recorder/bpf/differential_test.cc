// Goal: what eBPF says a call wrote is what the software recorder says.
// Method: differential. The same program, once natively under eBPF, once in
// QEMU under `clew record`: for each call that had the same result, both name
// the same bytes of the program's arena. Contents are compared where they do
// not depend on time or place.
#include <asm/unistd_64.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "bundle/input_log.h"
#include "common/os/file.h"
#include "recorder/bpf/input_recording.h"
#include "tests/recorder/bpf/truth.h"
#include "tests/recorder/bpf/watched_program.h"

namespace clew::recorder::bpf {
namespace {

// Of one call: its truth, and the arena's bytes that the log says it wrote.
struct LoggedCall {
  TruthCall truth;
  std::map<uint64_t, std::byte> written;  // by offset
};

std::map<uint64_t, std::byte> InArena(const SyscallInput& call,
                                      uint64_t arena) {
  std::map<uint64_t, std::byte> written;
  for (const MemoryWrite& write : call.writes) {
    for (size_t i = 0; i < write.bytes.size(); ++i) {
      const uint64_t offset = write.addr.as_int() + i - arena;
      if (offset < TRUTH_ARENA_BYTES) {
        written[offset] = write.bytes[i];
      }
    }
  }
  return written;
}

// The calls of worker `index`, with what `inputs` has of each.
std::vector<LoggedCall> ReadCalls(const std::string& folder, int index,
                                  const std::string& inputs) {
  constexpr size_t kRecord = sizeof(TruthCall) + 2 * TRUTH_ARENA_BYTES;
  const auto bytes = ReadWholeFile(folder + "/truth." + std::to_string(index));
  auto log = bundle::InputLog::Open(inputs);
  std::vector<LoggedCall> calls;
  if (!bytes || !log) {
    ADD_FAILURE() << folder << ": no truth or no log";
    return calls;
  }
  for (size_t at = 0; at < bytes->size();) {
    LoggedCall logged;
    std::memcpy(&logged.truth, bytes->data() + at, sizeof(logged.truth));
    const auto next =
        (*log)->Next(Tid(static_cast<int32_t>(logged.truth.thread)));
    const InputRecord end = UnknownInput{.count = 0, .cause = ""};
    const InputRecord record = next ? next->value_or(end) : end;
    const auto* const unknown = std::get_if<UnknownInput>(&record);
    if (unknown != nullptr && unknown->count == 0) {
      ADD_FAILURE() << inputs << " ends before the truth, after "
                    << calls.size() << " calls";
      return calls;
    }
    const auto* const call = std::get_if<SyscallInput>(&record);
    if (call == nullptr || call->number != logged.truth.number ||
        !std::ranges::equal(call->args, logged.truth.args)) {
      continue;  // what the thread did beside
    }
    EXPECT_EQ(call->result, logged.truth.result);
    logged.written = InArena(*call, logged.truth.arena);
    calls.push_back(std::move(logged));
    at += kRecord;
  }
  return calls;
}

std::set<uint64_t> Offsets(const LoggedCall& call) {
  std::set<uint64_t> offsets;
  for (const auto& [offset, byte] : call.written) {
    offsets.insert(offset);
  }
  return offsets;
}

// Reads of what the program itself wrote.
constexpr std::array<uint64_t, 5> kSameContents = {
    __NR_read, __NR_pread64, __NR_readv, __NR_preadv, __NR_recvfrom};

bool IsTruncatedMessage(const TruthCall& call) {
  return call.number == __NR_recvfrom &&
         static_cast<uint64_t>(call.result) > call.args[2];
}

struct Compared {
  size_t calls = 0;
  size_t with_writes = 0;
};

void CompareRecorders(const LoggedCall& native, const LoggedCall& qemu,
                      Compared& compared) {
  ASSERT_EQ(native.truth.number, qemu.truth.number);
  // Of a message that was cut the table counts what there was; eBPF what fits.
  if (native.truth.result != qemu.truth.result ||
      IsTruncatedMessage(native.truth)) {
    return;
  }
  EXPECT_EQ(Offsets(native), Offsets(qemu));
  if (std::ranges::count(kSameContents, native.truth.number) > 0) {
    EXPECT_EQ(native.written, qemu.written);
  }
  ++compared.calls;
  compared.with_writes += native.written.empty() ? 0 : 1;
}

void RecordNatively(const std::string& folder) {
  WaitingProgram program(
      {TraceeProgram("recorder_bpf_tracee"), folder, "--qemu"});
  auto recording = RecordProgram(
      program, folder + "/inputs.pb",
      {.ring_bytes = 128 << 20, .bytes_per_second = uint64_t{8} << 30});
  ASSERT_TRUE(recording) << recording.error().message;
  while (!program.Ended()) {
    ASSERT_TRUE(recording->Poll(10));
  }
  ASSERT_TRUE(recording->Finish());
  ASSERT_EQ(program.status(), 0);
}

void RecordInQemu(const std::string& folder) {
  const char* const build = std::getenv("CLEW_BINARY_DIR");
  const std::string command = std::string(build != nullptr ? build : "build") +
                              "/bin/clew record -o " + folder + "/bundle -- " +
                              TraceeProgram("recorder_bpf_tracee") + " " +
                              folder + " --qemu >" + folder + "/log 2>&1";
  const int status = std::system(command.c_str());
  const auto log = ReadWholeFile(folder + "/log");
  ASSERT_EQ(status, 0) << command << "\n"
                       << (log ? std::string(
                                     reinterpret_cast<const char*>(log->data()),
                                     log->size())
                               : "");
}

TEST(DifferentialTest, EbpfAndQemuNameTheSameBytes) {
  CLEW_NEEDS_BPF();
  const ScratchFolder native;
  const ScratchFolder qemu;
  ASSERT_NO_FATAL_FAILURE(RecordNatively(native.path()));
  ASSERT_NO_FATAL_FAILURE(RecordInQemu(qemu.path()));
  Compared compared;
  for (int i = 0; i < 4; ++i) {
    const auto ours = ReadCalls(native.path(), i, native.path() + "/inputs.pb");
    const auto theirs =
        ReadCalls(qemu.path(), i, qemu.path() + "/bundle/inputs.pb");
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t n = 0; n < ours.size(); ++n) {
      SCOPED_TRACE("thread " + std::to_string(i) + " call " +
                   std::to_string(n) + " number " +
                   std::to_string(ours[n].truth.number));
      ASSERT_NO_FATAL_FAILURE(CompareRecorders(ours[n], theirs[n], compared));
    }
  }
  // Most calls have the same result in both worlds.
  EXPECT_GT(compared.calls, 600u);
  EXPECT_GT(compared.with_writes, 300u);
  RecordProperty("calls", static_cast<int>(compared.calls));
  RecordProperty("with_writes", static_cast<int>(compared.with_writes));
}

}  // namespace
}  // namespace clew::recorder::bpf
