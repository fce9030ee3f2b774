// Goal: what a program gets from its system calls is what is handed on: every
// call, in order, with its result and all memory that the kernel wrote; what is
// not handed on is counted, at its place.
// Method: real programs on the kernel that runs the test, which write down
// themselves what they got. Oracle: applying the recorded writes to a thread's
// memory before a call gives its memory after it.
#include <asm/unistd_64.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "common/digest.h"
#include "common/os/file.h"
#include "tests/recorder/bpf/truth.h"
#include "tests/recorder/bpf/watched_program.h"
#include "tests/support/thread_state.h"
#include "tests/support/wait_until.h"

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

void CompareWithTruth(const TrueCall& truth, const SeenCall& seen) {
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
      ASSERT_NO_FATAL_FAILURE(CompareWithTruth(truth[n], *seen[n]));
      ++compared;
    }
  }
  RecordProperty("calls_compared", static_cast<int>(compared));
}

uint64_t WrittenBytes(const SeenCall& call) {
  uint64_t bytes = 0;
  for (const SeenWrite& write : call.writes) {
    bytes += write.bytes.size();
  }
  return bytes;
}

// Calls that return more than they wrote. Applying memory that did not change
// would not show.
TEST(InputSourceTest, NoMoreIsHandedOnThanTheKernelWrote) {
  CLEW_NEEDS_BPF();
  const ScratchFolder folder;
  KeepingSink sink;
  const auto watched = Watch(
      {TraceeProgram("recorder_bpf_tracee"), folder.path()}, Roomy(), sink);
  ASSERT_TRUE(watched) << watched.error().message;
  uint64_t truncated = 0;
  uint64_t short_names = 0;
  for (const auto& [tid, thread] : sink.threads) {
    for (const SeenCall& call : thread.calls) {
      if (call.number == __NR_recvfrom && call.result == 32) {
        EXPECT_EQ(WrittenBytes(call), 8u) << "of 32, MSG_TRUNC";
        ++truncated;
      }
      if (call.number == __NR_getsockname) {
        // The length, and of the two bytes of a name all or the first.
        EXPECT_GE(WrittenBytes(call), 5u);
        EXPECT_LE(WrittenBytes(call), 6u);
        short_names += WrittenBytes(call) == 5 ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(truncated, 8u);    // two rounds of four threads
  EXPECT_EQ(short_names, 8u);  // those with room for one byte
}

bool IsMark(const SeenCall& call) { return call.number == __NR_getpid; }

// Calls between the marks, which getpid's argument numbers.
std::vector<const SeenCall*> Behind(const KeepingSink::Thread& thread,
                                    uint64_t mark) {
  std::vector<const SeenCall*> calls;
  bool behind = false;
  for (const SeenCall& call : thread.calls) {
    if (IsMark(call)) {
      behind = call.args[0] == mark;
    } else if (behind) {
      calls.push_back(&call);
    }
  }
  return calls;
}

std::optional<int32_t> TidWithMark(const KeepingSink& sink, uint64_t mark) {
  for (const auto& [tid, thread] : sink.threads) {
    for (const SeenCall& call : thread.calls) {
      if (IsMark(call) && call.args[0] == mark) {
        return tid;
      }
    }
  }
  return std::nullopt;
}

const KeepingSink::Thread* ThreadWithMark(const KeepingSink& sink,
                                          uint64_t mark) {
  const auto tid = TidWithMark(sink, mark);
  return tid ? &sink.threads.at(*tid) : nullptr;
}

// Marks count up by one; what is missing between two must have been told.
void CheckMarks(const KeepingSink::Thread& thread, uint64_t marks) {
  uint64_t last = 0;
  uint64_t lost = 0;
  for (const SeenCall& call : thread.calls) {
    lost += call.lost_before;
    if (!IsMark(call)) {
      ASSERT_TRUE(last == 0 || last + lost >= marks)
          << "another call between two marks";
      continue;
    }
    if (last != 0) {
      ASSERT_EQ(call.args[0], last + lost + 1);
    }
    last = call.args[0];
    lost = 0;
  }
}

// As Watch, but the ring is emptied only each time that so many more units
// found no room: it is full most of the time, whoever is the faster.
Result<Watched> WatchSeldom(const std::vector<std::string>& command,
                            InputOptions options, InputSink& sink,
                            uint64_t lost_between) {
  WaitingProgram program(command);
  options.processes = {program.process()};
  CLEW_ASSIGN_OR_RETURN(source, KernelInputSource::Open(options));
  CLEW_RETURN_IF_ERROR(source->Start());
  program.Go();
  for (uint64_t emptied_at = 0; !program.Ended(); usleep(1000)) {
    const uint64_t lost = source->counts().lost[kRawRingFull];
    if (lost - emptied_at >= lost_between) {
      emptied_at = lost;
      CLEW_RETURN_IF_ERROR(source->Drain(sink));
    }
  }
  CLEW_RETURN_IF_ERROR(source->Finish(sink));
  return Watched{.counts = source->counts(), .status = program.status()};
}

// Goal: every call is either handed on or counted, none twice. With a budget
// that all but nothing fits in (and room for minutes of it), and a ring of the
// smallest size.
TEST(InputSourceTest, AFloodIsHandedOnOrCountedAtItsPlace) {
  CLEW_NEEDS_BPF();
  constexpr uint64_t kCalls = 250000;
  constexpr int kThreads = 4;
  constexpr uint64_t kLostBetween = 2000;
  for (const uint64_t budget : {uint64_t{200'000}, uint64_t{1} << 33}) {
    SCOPED_TRACE(budget);
    KeepingSink sink;
    const std::vector<std::string> command = {
        TraceeProgram("recorder_bpf_habits"), "flood", std::to_string(kThreads),
        std::to_string(kCalls)};
    const auto watched =
        budget < 1'000'000
            ? Watch(command,
                    {.ring_bytes = 128 << 20, .bytes_per_second = budget}, sink)
            : WatchSeldom(command,
                          {.ring_bytes = 64 << 10, .bytes_per_second = budget},
                          sink, kLostBetween);
    ASSERT_TRUE(watched) << watched.error().message;
    ASSERT_EQ(watched->status, 0);
    const KernelInputCounts& counts = watched->counts;
    EXPECT_EQ(counts.units, counts.reported + counts.lost_total());
    EXPECT_EQ(counts.broken, 0u);
    EXPECT_EQ(counts.untracked, 0u);
    const bool tiny = budget < 1'000'000;
    EXPECT_GT(counts.lost[tiny ? kRawBudget : kRawRingFull], kCalls / 2);
    EXPECT_EQ(counts.lost[tiny ? kRawRingFull : kRawBudget], 0u);
    uint64_t units = 0;
    uint64_t floods = 0;
    for (const auto& [tid, thread] : sink.threads) {
      ASSERT_NO_FATAL_FAILURE(CheckMarks(thread, kCalls)) << "thread " << tid;
      units += thread.units();
      floods += thread.units() >= kCalls ? 1 : 0;
    }
    EXPECT_EQ(units, counts.units) << "what the kernel counted was handed on";
    EXPECT_EQ(floods, kThreads);
    // set_robust_list, rseq, madvise, exit and the like of each thread.
    EXPECT_GE(units, kThreads * kCalls);
    EXPECT_LE(units, kThreads * (kCalls + 20) + 200);
  }
}

TEST(InputSourceTest,
     CallsThatSignalsInterruptHaveTheResultThatTheProgramSees) {
  CLEW_NEEDS_BPF();
  KeepingSink sink;
  const auto watched =
      Watch({TraceeProgram("recorder_bpf_habits"), "signals"}, {}, sink);
  ASSERT_TRUE(watched) << watched.error().message;
  ASSERT_EQ(watched->status, 0);
  const KeepingSink::Thread* const thread = ThreadWithMark(sink, 5);
  ASSERT_NE(thread, nullptr);

  const auto first = Behind(*thread, 1);  // read, rt_sigreturn
  ASSERT_GE(first.size(), 2u);
  EXPECT_EQ(first[0]->number, unsigned{__NR_read});
  EXPECT_EQ(first[0]->result, -EINTR);
  EXPECT_EQ(first[1]->number, unsigned{__NR_rt_sigreturn});

  const auto second = Behind(*thread, 2);  // read, rt_sigreturn, read
  ASSERT_GE(second.size(), 3u);
  EXPECT_EQ(second[0]->number, unsigned{__NR_read});
  EXPECT_EQ(second[0]->result, -512);
  EXPECT_EQ(second[1]->number, unsigned{__NR_rt_sigreturn});
  EXPECT_EQ(second[2]->number, unsigned{__NR_read});
  EXPECT_EQ(second[2]->result, 1);
  ASSERT_EQ(second[2]->writes.size(), 1u);
  EXPECT_EQ(second[2]->writes[0].bytes, std::vector{std::byte{'a'}});

  const auto third = Behind(*thread, 3);  // nanosleep, rt_sigreturn
  ASSERT_GE(third.size(), 2u);
  EXPECT_EQ(third[0]->result, -EINTR);
  EXPECT_TRUE(third[0]->unknown.empty()) << ToString(third[0]->unknown);
  ASSERT_EQ(third[0]->writes.size(), 1u);  // the time that was left
  EXPECT_EQ(third[0]->writes[0].bytes.size(), 16u);
  int64_t seconds = 0;
  std::memcpy(&seconds, third[0]->writes[0].bytes.data(), sizeof(seconds));
  EXPECT_GE(seconds, 99'000) << "of 100,000";

  ASSERT_EQ(thread->signals.size(), 3u);
  const InputSignal& signal = thread->signals[0].signal;
  EXPECT_EQ(signal.number, SIGUSR1);
  EXPECT_GT(signal.handler, 1u);
  EXPECT_NE(signal.interrupted_ip, TraceeAddr(0));
  EXPECT_EQ(thread->signals[1].signal.number, SIGUSR2);
}

// What a handler wrote down at its beginning; see habits.c.
struct FrameTruth {
  uint64_t frame;
  uint64_t bytes;
  uint64_t number;
  uint64_t info;
  uint64_t context;
};

TEST(InputSourceTest, AHandlersFrameIsWhatTheHandlerFinds) {
  CLEW_NEEDS_BPF();
  const ScratchFolder folder;
  const std::string path = folder.path() + "/frames";
  KeepingSink sink;
  const auto watched =
      Watch({TraceeProgram("recorder_bpf_habits"), "frames", path}, {}, sink);
  ASSERT_TRUE(watched) << watched.error().message;
  ASSERT_EQ(watched->status, 0);
  ASSERT_EQ(sink.threads.size(), 1u);
  const KeepingSink::Thread& thread = sink.threads.begin()->second;
  ASSERT_EQ(thread.signals.size(), 3u);
  Causes no_frame;
  no_frame.Add(kRawSignalFrame);
  if (thread.signals[0].signal.unknown == no_frame) {
    GTEST_SKIP() << "no program may be attached to the kernel's functions here";
  }
  const auto truth = ReadWholeFile(path);
  ASSERT_TRUE(truth) << truth.error().message;
  size_t at = 0;
  for (const SeenSignal& seen : thread.signals) {
    ASSERT_LE(at + sizeof(FrameTruth), truth->size());
    FrameTruth wanted;
    std::memcpy(&wanted, truth->data() + at, sizeof(wanted));
    at += sizeof(wanted);
    const InputSignal& signal = seen.signal;
    EXPECT_TRUE(signal.unknown.empty()) << ToString(signal.unknown);
    EXPECT_EQ(static_cast<uint64_t>(signal.number), wanted.number);
    EXPECT_EQ(signal.entry.ip.as_int(), signal.handler);
    EXPECT_EQ(signal.entry.rsp, wanted.frame);
    EXPECT_EQ(signal.entry.rdi, wanted.number);
    EXPECT_EQ(signal.entry.rsi, wanted.info);
    EXPECT_EQ(signal.entry.rdx, wanted.context);
    std::vector<std::byte> frame;
    for (const SeenWrite& piece : seen.frame) {
      EXPECT_EQ(piece.addr, wanted.frame + frame.size());
      frame.insert(frame.end(), piece.bytes.begin(), piece.bytes.end());
    }
    ASSERT_EQ(frame.size(), wanted.bytes);
    EXPECT_TRUE(
        std::ranges::equal(frame, std::span(*truth).subspan(at, wanted.bytes)));
    at += wanted.bytes;
  }
  EXPECT_EQ(at, truth->size());
}

TEST(InputSourceTest, ChildrenAreFollowedOnlyIfAskedFor) {
  CLEW_NEEDS_BPF();
  for (const bool follow : {true, false}) {
    KeepingSink sink;
    const auto watched = Watch({TraceeProgram("recorder_bpf_habits"), "child"},
                               {.follow_children = follow}, sink);
    ASSERT_TRUE(watched) << watched.error().message;
    ASSERT_EQ(watched->status, 0);
    EXPECT_EQ(ThreadWithMark(sink, 77) != nullptr, follow);
  }
}

// Where cgroup2 is mounted; empty: nowhere.
std::string CgroupMount() {
  std::ifstream mounts("/proc/self/mounts");
  std::string device;
  std::string where;
  std::string type;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream(line) >> device >> where >> type;
    if (type == "cgroup2") {
      return where;
    }
  }
  return "";
}

// A new cgroup with one below it; removed when destroyed, if nobody is in it.
class TestCgroup {
 public:
  TestCgroup() : folder_(CgroupMount() + "/clew-test-XXXXXX") {
    made_ =
        mkdtemp(folder_.data()) != nullptr && mkdir(below().c_str(), 0700) == 0;
  }
  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;
  ~TestCgroup() {
    rmdir(below().c_str());
    rmdir(folder_.c_str());
  }
  bool made() const { return made_; }
  const std::string& folder() const { return folder_; }
  std::string below() const { return folder_ + "/below"; }

 private:
  std::string folder_;
  bool made_ = false;
};

TEST(InputSourceTest, ACgroupIsWatchedWithAllBelowIt) {
  CLEW_NEEDS_BPF();
  const TestCgroup cgroup;
  if (!cgroup.made()) {
    GTEST_SKIP() << "no cgroup can be made at " << cgroup.folder();
  }
  KeepingSink sink;
  WaitingProgram inside({TraceeProgram("recorder_bpf_habits"), "child"});
  WaitingProgram outside({TraceeProgram("recorder_bpf_habits"), "marks"});
  std::ofstream(cgroup.below() + "/cgroup.procs") << inside.process();
  const auto source = KernelInputSource::Open({.cgroup = cgroup.folder()});
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_TRUE((*source)->Start());
  EXPECT_FALSE((*source)->AddProcess(outside.process()));
  inside.Go();
  outside.Go();
  while (!inside.Ended() || !outside.Ended()) {
    ASSERT_TRUE((*source)->Wait(10));
  }
  ASSERT_TRUE((*source)->Finish(sink));
  EXPECT_TRUE(sink.threads.contains(inside.process()));
  EXPECT_NE(ThreadWithMark(sink, 77), nullptr) << "its child";
  EXPECT_FALSE(sink.threads.contains(outside.process()));
  EXPECT_EQ(ThreadWithMark(sink, 2), nullptr);
}

// A thread that is killed in a call, and one that is killed outside.
TEST(InputSourceTest, CallsThatNeverReturnAreHandedOn) {
  CLEW_NEEDS_BPF();
  for (const bool killed : {true, false}) {  // else the watch ends before
    SCOPED_TRACE(killed);
    KeepingSink sink;
    WaitingProgram program({TraceeProgram("recorder_bpf_habits"), "sleep"});
    const auto source =
        KernelInputSource::Open({.processes = {program.process()}});
    ASSERT_TRUE(source) << source.error().message;
    ASSERT_TRUE((*source)->Start());
    program.Go();
    ASSERT_TRUE(test::WaitUntil([&] {
      EXPECT_TRUE((*source)->Drain(sink));
      return TidWithMark(sink, 8).has_value();
    }));
    const int32_t tid = TidWithMark(sink, 8).value();
    // Behind the mark it waits nowhere but in read.
    ASSERT_TRUE(test::WaitUntil(
        [&] { return test::ThreadState(program.process(), tid) == 'S'; }));
    if (killed) {
      ASSERT_EQ(kill(program.process(), SIGKILL), 0);
      while (!program.Ended()) {
        usleep(1000);
      }
    }
    ASSERT_TRUE((*source)->Finish(sink));
    const KeepingSink::Thread* const reader = ThreadWithMark(sink, 8);
    ASSERT_NE(reader, nullptr);
    EXPECT_EQ(reader->ended, killed);
    const auto calls = Behind(*reader, 8);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0]->number, unsigned{__NR_read});
    EXPECT_EQ(calls[0]->result, std::nullopt);
    const KernelInputCounts counts = (*source)->counts();
    EXPECT_EQ(counts.units, counts.reported);
  }
}

TEST(InputSourceTest, MoreThreadsThanThereIsRoomForAreCounted) {
  CLEW_NEEDS_BPF();
  KeepingSink sink;
  const auto watched =
      Watch({TraceeProgram("recorder_bpf_habits"), "flood", "4", "100000"},
            {.threads_max = 2}, sink);
  ASSERT_TRUE(watched) << watched.error().message;
  EXPECT_GT(watched->counts.untracked, 0u);
  EXPECT_LT(watched->counts.units, 400'000u);
}

TEST(InputSourceTest, WhatIsLongerThanACallMayBeIsUnknown) {
  CLEW_NEEDS_BPF();
  constexpr uint64_t kReads[] = {__NR_pread64, __NR_readv, __NR_preadv};
  const ScratchFolder folder;
  KeepingSink sink;
  const auto watched =
      Watch({TraceeProgram("recorder_bpf_tracee"), folder.path()},
            {.ring_bytes = 128 << 20,
             .bytes_per_second = uint64_t{8} << 30,
             .call_bytes_max = 10000},
            sink);
  ASSERT_TRUE(watched) << watched.error().message;
  uint64_t long_reads = 0;
  for (const auto& [tid, thread] : sink.threads) {
    for (const SeenCall& call : thread.calls) {
      const bool reads =
          std::ranges::count(kReads, call.number) > 0 && call.result > 10000;
      EXPECT_EQ(call.unknown.Has(kRawTooLong), reads) << "call " << call.number;
      long_reads += call.unknown.Has(kRawTooLong) ? 1 : 0;
    }
  }
  EXPECT_EQ(long_reads, 24u);  // three in two rounds of four threads
  EXPECT_EQ(watched->counts.partial[kRawTooLong], 24u);
}

TEST(InputSourceTest, OptionsThatMakeNoSenseAreRefused) {
  for (const InputOptions& options :
       {InputOptions{.ring_bytes = 100000}, InputOptions{.ring_bytes = 4096},
        InputOptions{.bytes_per_second = 1},
        InputOptions{.call_bytes_max = 1u << 31},
        InputOptions{.threads_max = 0},
        InputOptions{.processes = {1}, .cgroup = "/sys/fs/cgroup"}}) {
    const auto source = KernelInputSource::Open(options);
    ASSERT_FALSE(source);
    EXPECT_EQ(source.error().code, ErrorCode::kInvalidArgument)
        << source.error().message;
  }
  CLEW_NEEDS_BPF();
  EXPECT_FALSE(KernelInputSource::Open({.cgroup = "/tmp"}));
  EXPECT_FALSE(KernelInputSource::Open({.processes = {-1}}));
}

}  // namespace
}  // namespace clew::recorder::bpf
