// Goal: the promises of recorder/bpf/input_log_writer.h, clock_samples.h and
// cgroup.h: what is written is read back by the decoder as it was, the unknown
// at its place; times on the TSC are sound; cgroups have their depth. Method:
// hand-made events through the log and the decoder's reader; a clock whose rate
// is known; and a real program whose own TSC reads enclose each call.
#include <asm/unistd_64.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "bundle/input_log.h"
#include "common/digest.h"
#include "common/os/file.h"
#include "recorder/bpf/cgroup.h"
#include "recorder/bpf/input_recording.h"
#include "tests/recorder/bpf/truth.h"
#include "tests/recorder/bpf/watched_program.h"

namespace clew::recorder::bpf {
namespace {

using testing::HasSubstr;

// The thread's next record; behind the last one, an unknown of no calls.
InputRecord NextOf(bundle::InputLog& log, Tid thread) {
  const auto next = log.Next(thread);
  EXPECT_TRUE(next) << next.error().message;
  const InputRecord end = UnknownInput{.count = 0, .cause = ""};
  return next ? next->value_or(end) : end;
}

bool IsEnd(const InputRecord& record) {
  const auto* const unknown = std::get_if<UnknownInput>(&record);
  return unknown != nullptr && unknown->count == 0;
}

class MemoryFile final : public WritableFile {
 public:
  Status Append(std::span<const std::byte> more) override {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return {};
  }
  Status Sync() override { return {}; }
  std::vector<std::byte> bytes;
};

// --- The clock.

// Three ticks a nanosecond, from tick 1000 at second 5, give or take.
ClockSample SampleAt(uint64_t nanos, double drift, uint64_t width) {
  const auto tick = static_cast<uint64_t>(
      1000 + 3 * (1 + drift) * static_cast<double>(nanos));
  return {TscTicks(tick - width / 2), TscTicks(tick + width / 2),
          MonotonicNanos(5'000'000'000 + nanos)};
}

TEST(ClockSamplesTest, TheTrueTickIsInTheIntervalAndItIsNarrow) {
  const auto seed =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 200; ++round) {
    const double drift = static_cast<double>(random.Below(801)) * 1e-6 - 4e-4;
    uint64_t now = 0;
    ClockSamples clock([&] {
      now += 1'000'000;
      return SampleAt(now, drift, 100);
    });
    for (int i = 0; i < 20; ++i) {
      now += random.Below(100'000'000);
      const uint64_t before = now;
      clock.Sample();
      const uint64_t time = before + random.Below(now - before + 1'000'000);
      const TscInterval none = {TscTicks(~uint64_t{0}), TscTicks(0)};
      const TscInterval tsc =
          clock.ToTsc(MonotonicNanos(5'000'000'000 + time)).value_or(none);
      const uint64_t truth = SampleAt(time, drift, 0).before.as_int();
      ASSERT_LE(tsc.lo.as_int(), truth);
      ASSERT_GE(tsc.hi.as_int(), truth);
      // 1 ms from a sample, 3 ticks a ns, 2 * 1e-3 of that, and 100 ticks.
      ASSERT_LE(tsc.hi.as_int() - tsc.lo.as_int(), 6200u);
    }
  }
}

TEST(ClockSamplesTest, TimesBeforeTheFirstSampleHaveNone) {
  uint64_t now = 0;
  const ClockSamples clock([&] { return SampleAt(now += 2'000'000, 0, 10); });
  EXPECT_EQ(clock.ToTsc(MonotonicNanos(0)), std::nullopt);
  EXPECT_EQ(clock.ToTsc(MonotonicNanos(5'000'000'000)), std::nullopt);
  EXPECT_NE(clock.ToTsc(MonotonicNanos(5'002'000'000)), std::nullopt);
}

// --- The log.

class InputLogTest : public testing::Test {
 protected:
  static InputCall Call(int32_t thread, uint64_t number, int64_t result) {
    InputCall call;
    call.who = {.process = 5, .thread = Tid(thread)};
    call.number = number;
    call.result = result;
    return call;
  }
  std::vector<InputRecord> Read(int32_t thread) {
    auto log = bundle::InputLog::Over(file_.bytes, "inputs.pb");
    EXPECT_TRUE(log) << log.error().message;
    std::vector<InputRecord> records;
    while (true) {
      const InputRecord next = NextOf(**log, Tid(thread));
      if (IsEnd(next)) {
        return records;
      }
      records.push_back(next);
    }
  }

  MemoryFile file_;
  ClockSamples clock_;
};

TEST_F(InputLogTest, ACallComesBackAsItWas) {
  InputLogWriter log(file_, clock_, {.process = 5});
  const std::string_view text = "hello";
  const MemoryPiece pieces[] = {
      {TraceeAddr(0x1000), std::as_bytes(std::span(text))}};
  InputCall call = Call(7, 0, 5);
  call.args = {1, 2, ~uint64_t{0}, 4, 5, 6};
  call.writes = pieces;
  call.output_digest = 99;
  call.output_bytes = 5;
  ASSERT_TRUE(log.OnCall(call));
  InputCall endless = Call(7, 60, 0);
  endless.result = std::nullopt;
  ASSERT_TRUE(log.OnCall(endless));
  const auto records = Read(7);
  ASSERT_EQ(records.size(), 2u);
  const auto& seen = std::get<SyscallInput>(records[0]);
  EXPECT_EQ(seen.number, 0u);
  EXPECT_EQ(seen.args, call.args);
  EXPECT_EQ(seen.result, 5);
  ASSERT_EQ(seen.writes.size(), 1u);
  EXPECT_EQ(seen.writes[0].addr, TraceeAddr(0x1000));
  EXPECT_EQ(seen.writes[0].bytes.size(), 5u);
  EXPECT_EQ(seen.output_digest, 99u);
  EXPECT_EQ(seen.output_bytes, 5u);
  EXPECT_EQ(seen.entered_tsc, TscTicks(0));
  EXPECT_EQ(std::get<SyscallInput>(records[1]).result, std::nullopt);
  EXPECT_EQ(log.counts().calls, 2u);
  EXPECT_EQ(log.counts().unknown, 0u);
  EXPECT_EQ(log.counts().bytes, file_.bytes.size());
}

TEST_F(InputLogTest, WhatIsNotKnownWholeIsUnknownAtItsPlace) {
  InputLogWriter log(file_, clock_, {.process = 5});
  const ThreadName who = {.process = 5, .thread = Tid(7)};
  ASSERT_TRUE(log.OnCall(Call(7, 39, 5)));
  Causes full;
  full.Add(kRawRingFull);
  ASSERT_TRUE(log.OnLoss({.who = who, .count = 3, .causes = full}));
  InputCall fault = Call(7, 45, 100);
  fault.unknown.Add(kRawFault);
  ASSERT_TRUE(log.OnCall(fault));
  ASSERT_TRUE(log.OnSignal({.who = who, .number = 10, .handler = 0}));
  Causes no_frame;
  no_frame.Add(kRawSignalFrame);
  ASSERT_TRUE(log.OnSignal(
      {.who = who, .number = 10, .handler = 0x1000, .unknown = no_frame}));
  ASSERT_TRUE(log.OnCall(Call(7, 59, 0)));  // execve
  const auto records = Read(7);
  ASSERT_EQ(records.size(), 5u);
  EXPECT_TRUE(std::holds_alternative<SyscallInput>(records[0]));
  const auto unknown = [&](size_t i) {
    return std::get<UnknownInput>(records[i]);
  };
  EXPECT_EQ(unknown(1).count, 3u);
  EXPECT_EQ(unknown(1).cause, "the ring was full");
  EXPECT_EQ(unknown(1).call_number, std::nullopt);
  EXPECT_EQ(unknown(2).call_number, 45u);
  EXPECT_THAT(unknown(3).cause, HasSubstr("signal handler"));
  EXPECT_THAT(unknown(4).cause, HasSubstr("another program"));
  EXPECT_EQ(log.counts().calls, 1u);
  EXPECT_EQ(log.counts().unknown, 6u);
}

TEST_F(InputLogTest, AHandlerThatIsEnteredComesBackAsItWas) {
  InputLogWriter log(file_, clock_, {.process = 5});
  std::array<std::byte, 400> head = {};
  head[8 + 40 + 128] = std::byte{0x34};  // rip in the frame
  head[8 + 40 + 129] = std::byte{0x12};
  const std::array<std::byte, 3> rest = {};
  const MemoryPiece frame[] = {{TraceeAddr(0x7000), head},
                               {TraceeAddr(0x7000 + head.size()), rest}};
  ASSERT_TRUE(log.OnSignal({.who = {.process = 5, .thread = Tid(7)},
                            .number = 10,
                            .handler = 0x1000,
                            .interrupted_ip = TraceeAddr(0x1236),
                            .entry = {.ip = TraceeAddr(0x1000),
                                      .rsp = 0x7000,
                                      .rdi = 10,
                                      .rsi = 2,
                                      .rdx = 3,
                                      .rax = 4},
                            .frame = frame}));
  const auto records = Read(7);
  ASSERT_EQ(records.size(), 1u);
  const auto& seen = std::get<SignalInput>(records[0]);
  EXPECT_EQ(seen.number, 10);
  EXPECT_EQ(seen.interrupted_ip, TraceeAddr(0x1234))
      << "a call that is made once more begins there";
  EXPECT_EQ(seen.handler_ip, TraceeAddr(0x1000));
  EXPECT_EQ(seen.rsp, 0x7000u);
  EXPECT_EQ(seen.rdi, 10u);
  EXPECT_EQ(seen.rsi, 2u);
  EXPECT_EQ(seen.rdx, 3u);
  EXPECT_EQ(seen.rax, 4u);
  ASSERT_EQ(seen.writes.size(), 2u);
  EXPECT_EQ(seen.writes[1].addr, TraceeAddr(0x7000 + head.size()));
  EXPECT_EQ(log.counts().signals, 1u);
  EXPECT_EQ(log.counts().unknown, 0u);
}

TEST_F(InputLogTest, OthersAndWhatCameBeforeExecAreLeftOut) {
  InputLogWriter log(file_, clock_, {.process = 5, .from_exec = true});
  InputCall other = Call(8, 59, 0);
  other.who.process = 6;
  ASSERT_TRUE(log.OnCall(other));
  ASSERT_TRUE(log.OnCall(Call(7, 39, 1)));
  ASSERT_TRUE(log.OnCall(Call(7, 59, -2)));  // no such file
  EXPECT_TRUE(file_.bytes.empty());
  ASSERT_TRUE(log.OnCall(Call(7, 59, 0)));
  EXPECT_TRUE(file_.bytes.empty());
  ASSERT_TRUE(log.OnCall(Call(7, 39, 2)));
  other.number = 39;
  ASSERT_TRUE(log.OnCall(other));
  EXPECT_EQ(Read(7).size(), 1u);
  EXPECT_EQ(Read(8).size(), 0u);
}

TEST_F(InputLogTest, BehindTheLimitEachThreadIsToldOnce) {
  InputLogWriter log(file_, clock_, {.process = 5, .bytes_max = 10});
  for (const int32_t thread : {7, 8}) {
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(log.OnCall(Call(thread, 39, i)));
    }
  }
  const auto first = Read(7);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<SyscallInput>(first[0]));
  EXPECT_THAT(std::get<UnknownInput>(first[1]).cause, HasSubstr("its limit"));
  EXPECT_EQ(Read(8).size(), 1u);
  EXPECT_EQ(log.counts().calls, 1u);
  EXPECT_EQ(log.counts().unknown, 9u);
}

// --- The whole way, on the kernel that runs the test.

void CheckTimes(const ScratchFolder& folder, bundle::InputLog& log) {
  constexpr size_t kRecord = sizeof(TruthCall) + 2 * TRUTH_ARENA_BYTES;
  const auto bytes = ReadWholeFile(folder.path() + "/truth.0");
  ASSERT_TRUE(bytes) << bytes.error().message;
  size_t at = 0;
  uint64_t width_max = 0;
  TruthCall truth;
  std::memcpy(&truth, bytes->data(), sizeof(truth));
  const Tid thread(static_cast<int32_t>(truth.thread));
  while (at < bytes->size()) {
    std::memcpy(&truth, bytes->data() + at, sizeof(truth));
    const InputRecord next = NextOf(log, thread);
    ASSERT_FALSE(IsEnd(next)) << "the log ends before the truth";
    const auto* const call = std::get_if<SyscallInput>(&next);
    if (call == nullptr || call->number != truth.number ||
        !std::ranges::equal(call->args, truth.args)) {
      continue;  // what the thread did beside
    }
    ASSERT_GE(call->entered_tsc.as_int(), truth.tsc_before);
    ASSERT_LE(call->left_tsc.as_int(), truth.tsc_after);
    ASSERT_GT(call->left_tsc, TscTicks(0));
    const uint64_t width = call->entered_tsc.as_int() - truth.tsc_before;
    width_max = std::max(width_max, width);
    at += kRecord;
  }
  testing::Test::RecordProperty("entered_after_ticks_max",
                                std::to_string(width_max));
}

TEST(InputRecordingTest, InputsOfARealProgramWithTheirTimes) {
  CLEW_NEEDS_BPF();
  const ScratchFolder folder;
  const std::string path = folder.path() + "/inputs.pb";
  WaitingProgram program({TraceeProgram("recorder_bpf_tracee"), folder.path()});
  auto recording = RecordProgram(
      program, path,
      {.ring_bytes = 128 << 20, .bytes_per_second = uint64_t{8} << 30});
  ASSERT_TRUE(recording) << recording.error().message;
  while (!program.Ended()) {
    ASSERT_TRUE(recording->Poll(10));
  }
  const auto summary = recording->Finish();
  ASSERT_TRUE(summary) << summary.error().message;
  ASSERT_EQ(program.status(), 0);
  EXPECT_EQ(summary->counts.lost_total(), 0u);
  EXPECT_GT(summary->log.calls, 800u);
  auto log = bundle::InputLog::Open(path);
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ((*log)->threads().size(), 5u);
  CheckTimes(folder, **log);
  // The first thing that a program does is set up its heap; execve is not
  // there.
  auto main_log = bundle::InputLog::Open(path);
  ASSERT_TRUE(main_log) << main_log.error().message;
  const InputRecord first = NextOf(**main_log, Tid(program.process()));
  EXPECT_EQ(std::get<SyscallInput>(first).number, unsigned{__NR_brk});
}

TEST(InputRecordingTest, BeginsWithTheProgramThatIsExecuted) {
  CLEW_NEEDS_BPF();
  const ScratchFolder folder;
  const std::string path = folder.path() + "/inputs.pb";
  WaitingProgram program({TraceeProgram("recorder_bpf_habits"), "exec"});
  auto recording = RecordProgram(program, path, {});
  ASSERT_TRUE(recording) << recording.error().message;
  while (!program.Ended()) {
    ASSERT_TRUE(recording->Poll(10));
  }
  ASSERT_TRUE(recording->Finish());
  auto log = bundle::InputLog::Open(path);
  ASSERT_TRUE(log) << log.error().message;
  std::vector<uint64_t> marks;
  bool executed = false;
  while (true) {
    const InputRecord next = NextOf(**log, Tid(program.process()));
    if (IsEnd(next)) {
      break;
    }
    if (const auto* const call = std::get_if<SyscallInput>(&next);
        call != nullptr && call->number == __NR_getpid) {
      marks.push_back(call->args[0]);
      EXPECT_EQ(executed, marks.size() == 2);
    }
    if (const auto* const unknown = std::get_if<UnknownInput>(&next);
        unknown != nullptr && unknown->call_number == __NR_execve) {
      executed = true;
    }
  }
  EXPECT_EQ(marks, (std::vector<uint64_t>{1, 2}));
}

// --- Cgroups.

TEST(CgroupTest, HasItsDepthBelowTheMount) {
  std::ifstream file("/proc/self/mountinfo");
  const std::string mountinfo(std::istreambuf_iterator<char>(file), {});
  std::string mount;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" - cgroup2 ") != std::string::npos) {
      std::istringstream words(line);
      for (int i = 0; i < 5; ++i) {
        words >> mount;
      }
    }
  }
  if (mount.empty()) {
    GTEST_SKIP() << "no cgroup2 is mounted here";
  }
  const auto found = FindCgroup(mount, mountinfo);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->level, 0u);
  EXPECT_FALSE(FindCgroup(mount, "")) << "no mount is known";
  EXPECT_FALSE(FindCgroup("/tmp", mountinfo));
  EXPECT_FALSE(FindCgroup(mount + "/nonexistent", mountinfo));
  std::string folder = mount + "/clew-test-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    GTEST_SKIP() << "no cgroup can be made here";
  }
  const auto below = FindCgroup(folder, mountinfo);
  rmdir(folder.c_str());
  ASSERT_TRUE(below) << below.error().message;
  EXPECT_EQ(below->level, 1u);
  EXPECT_NE(below->id, found->id);
}

}  // namespace
}  // namespace clew::recorder::bpf
