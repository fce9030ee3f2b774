// Goal: in a trace of a whole host every process's instructions come out of its
// own code, though all have it at the same addresses: after a fork (the
// parent's), after an execve in the midst of a thread's time (the new
// program's), and where decoding begins at a PSB in user mode. A process of
// which nothing is known is a gap that says so. Method: made-up runs on two
// cores, traced with our encoder and read as hardware's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>

#include "bundle/perf_data/perf_data_writer.h"
#include "common/digest.h"
#include "common/os/file.h"
#include "decoder/gap_counts.h"
#include "decoder/streams.h"
#include "recorder/pt_encoder/core_encoder.h"
#include "recorder/software/encoder_description.h"
#include "tests/decoder/code_base.h"

namespace clew::decoder {
namespace {

namespace fs = std::filesystem;
using bundle::MmapRecord;
using bundle::PerfData;
using bundle::PerfDataConfig;
using bundle::PerfDataWriter;
using bundle::RecordOrigin;
using recorder::EnableCause;

constexpr int kLoopsMax = 20;

// Program n: n nops, "jnz" back to the first, "syscall", and "jmp" to the
// first. So the same packets mean another number of instructions in each.
std::vector<std::byte> ProgramBytes(unsigned nops) {
  std::vector<std::byte> code(nops, std::byte{0x90});
  const auto put = [&code](unsigned byte) {
    code.push_back(static_cast<std::byte>(byte));
  };
  put(0x75);
  put(256 - (nops + 2));
  put(0x0f);
  put(0x05);
  put(0xeb);
  put(256 - (nops + 6));
  return code;
}

struct Task {
  int32_t process = 0;
  Tid thread;
  unsigned program = 0;
  uint64_t ip = kCodeBase;
};

struct TestCore {
  CoreId id;
  recorder::VectorSink sink;
  std::unique_ptr<recorder::CoreEncoder> encoder;
  Task* task = nullptr;
};

class ProcessesTest : public testing::Test {
 protected:
  ProcessesTest() {
    std::string pattern = fs::temp_directory_path() / "clew-proc-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    encoder_.psb_period_bytes = 256;
    for (unsigned program = 1; program <= kPrograms; ++program) {
      EXPECT_TRUE(WriteWholeFile(PosixFileSystem(), PathOf(program),
                                 ProgramBytes(program)));
    }
    PerfDataConfig config;
    config.core_count = 2;
    recorder::DescribeEncoder(encoder_, config);
    auto writer =
        PerfDataWriter::Create(PosixFileSystem(), perf_data(), config);
    EXPECT_TRUE(writer) << writer.error().message;
    writer_ = std::make_unique<PerfDataWriter>(std::move(*writer));
    for (uint32_t i = 0; i < cores_.size(); ++i) {
      cores_[i].id = CoreId(i);
      cores_[i].encoder =
          std::make_unique<recorder::CoreEncoder>(encoder_, cores_[i].sink);
    }
  }
  ~ProcessesTest() override { fs::remove_all(folder_); }

  static constexpr unsigned kPrograms = 6;
  std::string perf_data() const { return folder_ + "/perf.data"; }
  std::string PathOf(unsigned program) const {
    return fmt::format("{}/program{}", folder_, program);
  }
  RecordOrigin Origin(const Task& task, const TestCore& core) const {
    return {.process = task.process,
            .thread = task.thread,
            .time = TscTicks(now_),
            .core = core.id};
  }
  void Tick(TestCore& core, uint64_t ticks) {
    now_ += ticks;
    core.encoder->AdvanceTime(TscTicks(now_));
  }

  // A new program in the task.
  void Exec(Task& task, TestCore& core, unsigned program) {
    task.program = program;
    task.ip = kCodeBase;
    Tick(core, 50);
    EXPECT_TRUE(writer_->AddComm(Origin(task, core), "exec", true));
    Tick(core, 50);
    Map(task, core);
    Tick(core, 50);
  }
  void Map(const Task& task, TestCore& core) {
    EXPECT_TRUE(writer_->AddMmap2(
        Origin(task, core),
        {.addr = TraceeAddr(kCodeBase),
         .size_bytes = ProgramBytes(task.program).size(),
         .file_offset = 0,
         .prot = 5,
         .flags = 2,
         .path = PathOf(task.program),
         .build_id = {static_cast<std::byte>(task.program)}}));
  }
  Task Fork(const Task& parent, TestCore& core, int32_t child,
            int32_t child_process) {
    Tick(core, 20);
    EXPECT_TRUE(
        writer_->AddFork(Origin(parent, core), child_process, Tid(child)));
    Task task = parent;
    task.process = child_process;
    task.thread = Tid(child);
    return task;
  }

  void In(TestCore& core, Task& task) {
    Tick(core, 100);
    EXPECT_TRUE(writer_->AddSwitchIn(Origin(task, core)));
    Tick(core, 5);
    core.task = &task;
    core.encoder->Enable(TraceeAddr(task.ip), EnableCause::kSwitchIn);
  }
  void Out(TestCore& core) {
    Tick(core, 5);
    EXPECT_TRUE(writer_->AddSwitchOut(Origin(*core.task, core), true));
    core.task = nullptr;
    Tick(core, 100);
  }
  void Ran(TestCore& core, uint64_t ip) {
    Tick(core, 1 + random_.Below(3));
    truth_[core.task->thread].push_back(TraceeAddr(ip));
  }
  // Rounds of the task's loop and a system call, in which it stays.
  void RunToCall(TestCore& core, uint64_t loops) {
    Task& task = *core.task;
    const unsigned nops = task.program;
    const uint64_t jump = kCodeBase + nops + 4;
    if (task.ip == jump) {
      Ran(core, jump);
    }
    for (uint64_t loop = 0; loop <= loops; ++loop) {
      for (unsigned i = 0; i < nops; ++i) {
        Ran(core, kCodeBase + i);
      }
      Ran(core, kCodeBase + nops);
      const bool again = loop < loops;
      core.encoder->Conditional(
          again, TraceeAddr(again ? kCodeBase : kCodeBase + nops + 2));
    }
    Ran(core, kCodeBase + nops + 2);
    core.encoder->FarTransfer();
    task.ip = jump;
  }
  void Return(TestCore& core) {
    Tick(core, 20);
    core.encoder->Enable(TraceeAddr(core.task->ip), EnableCause::kKernelReturn);
  }

  void Finish() {
    for (TestCore& core : cores_) {
      core.encoder->Flush();
      const std::string path = fmt::format("{}/core{}.pt", folder_, core.id);
      const auto bytes = std::as_bytes(std::span(core.sink.bytes()));
      EXPECT_TRUE(
          WriteWholeFile(PosixFileSystem(), path, bytes.subspan(cut_bytes_)));
      EXPECT_TRUE(writer_->AddAuxtrace(core.id, path));
    }
    EXPECT_TRUE(writer_->Finish());
  }

  std::unique_ptr<PerfTrace> LoadTrace() const {
    TraceConfig config;
    config.branches_before_timing = true;
    config.resolve_image = [](const MmapRecord& mapping) {
      return fs::exists(mapping.path) ? mapping.path : std::string();
    };
    auto data = PerfData::Open(perf_data());
    EXPECT_TRUE(data) << data.error().message;
    auto trace = PerfTrace::Load(std::move(*data), config);
    EXPECT_TRUE(trace) << trace.error().message;
    return std::move(*trace);
  }

  struct Seen {
    std::vector<TraceeAddr> insns;
    std::vector<Gap> gaps;
  };
  static Seen Pull(TraceStreams& streams, Tid thread) {
    Seen seen;
    while (true) {
      auto item = streams.Next(thread);
      if (!item) {
        ADD_FAILURE() << item.error().message;
        return seen;
      }
      const std::optional<StreamItem>& next = *item;
      if (!next) {
        return seen;
      }
      if (const auto* gap = std::get_if<Gap>(&*next)) {
        seen.gaps.push_back(*gap);
        continue;
      }
      const Status walked = streams.ForEachInstruction(
          std::get<StreamBlock>(*next),
          [&](const WalkedInsn& insn) { seen.insns.push_back(insn.ip); });
      EXPECT_TRUE(walked) << walked.error().message;
    }
  }

  // Two processes, their forks and new programs, in any order on two cores.
  void RunAtRandom(uint64_t seed) {
    random_ = Random(seed);
    TestCore& boot = cores_[0];
    for (const int32_t process : {100, 200}) {
      tasks_.push_back({.process = process, .thread = Tid(process)});
      Exec(tasks_.back(), boot, 1 + process / 100);
    }
    for (int step = 0; step < 400; ++step) {
      TestCore& core = cores_[random_.Below(cores_.size())];
      Task& task = tasks_[random_.Below(tasks_.size())];
      const bool busy = std::ranges::any_of(
          cores_, [&](const TestCore& of) { return of.task == &task; });
      if (core.task == nullptr && !busy) {
        In(core, task);
      } else if (core.task != nullptr) {
        StepOn(core);
      }
    }
    for (TestCore& core : cores_) {
      if (core.task != nullptr) {
        RunToCall(core, 1);
        Out(core);
      }
    }
    Finish();
  }
  // In user mode before and, but for a switch, after.
  void StepOn(TestCore& core) {
    RunToCall(core, random_.Below(kLoopsMax));
    Task& task = *core.task;
    const uint64_t what = random_.Below(8);
    if (what < 3) {
      return Out(core);
    }
    if (what == 3 && tasks_.size() < 8) {
      const auto id = 300 + static_cast<int32_t>(tasks_.size());
      const bool thread = random_.Below(3) == 0;
      tasks_.push_back(Fork(task, core, id, thread ? task.process : id));
      ++forks_;
    } else if (what == 4 && IsAlone(task)) {
      Exec(task, core, 1 + static_cast<unsigned>(random_.Below(kPrograms)));
      ++execs_;
    }
    Return(core);
  }
  bool IsAlone(const Task& task) const {
    return std::ranges::count(tasks_, task.process, &Task::process) == 1;
  }

  void ExpectAll(TraceStreams& streams) {
    uint64_t insns = 0;
    for (const auto& [thread, truth] : truth_) {
      const Seen seen = Pull(streams, thread);
      EXPECT_TRUE(seen.gaps.empty())
          << "thread " << thread.as_int() << ": " << seen.gaps.front().detail;
      EXPECT_TRUE(seen.insns == truth)
          << "thread " << thread.as_int() << ": " << seen.insns.size()
          << " instructions, wanted " << truth.size();
      insns += truth.size();
    }
    EXPECT_GT(insns, 1000u);
  }

  std::string folder_;
  recorder::EncoderConfig encoder_;
  std::unique_ptr<PerfDataWriter> writer_;
  std::array<TestCore, 2> cores_;
  std::deque<Task> tasks_;
  std::map<Tid, std::vector<TraceeAddr>> truth_;
  Random random_{1};
  uint64_t now_ = 1000;
  size_t cut_bytes_ = 0;  // of each core's PT, from its beginning
  uint64_t forks_ = 0;
  uint64_t execs_ = 0;
};

class RandomProcessesTest : public ProcessesTest,
                            public testing::WithParamInterface<uint64_t> {};

TEST_P(RandomProcessesTest, EachThreadHasItsProcessesCode) {
  RunAtRandom(GetParam());
  EXPECT_GT(forks_, 0u);
  EXPECT_GT(execs_, 0u);
  const auto trace = LoadTrace();
  ASSERT_TRUE(trace->spaces().several());
  // Two: images are put together anew all the time.
  for (const size_t images : {size_t{2}, size_t{64}}) {
    auto streams =
        TraceStreams::Create(*trace, {.images_per_core_max = images});
    ASSERT_TRUE(streams) << streams.error().message;
    ExpectAll(**streams);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProcessesTest,
                         testing::Range(uint64_t{1}, uint64_t{11}));

// The second process is in its loop at the first PSB that is left.
TEST_F(ProcessesTest, APsbInUserModeHasTheCodeOfWhoRunsThen) {
  Task one{.process = 100, .thread = Tid(100)};
  Task two{.process = 200, .thread = Tid(200)};
  TestCore& core = cores_[0];
  Exec(one, core, 1);
  Exec(two, core, 4);
  In(core, one);
  RunToCall(core, 5);
  Out(core);
  core.encoder->Flush();
  const size_t first_bytes = core.sink.bytes().size();
  In(core, two);
  RunToCall(core, 20000);
  Out(core);
  core.encoder->Flush();
  const auto pt = std::as_bytes(std::span(core.sink.bytes()));
  const std::string path = folder_ + "/core0.pt";
  ASSERT_TRUE(
      WriteWholeFile(PosixFileSystem(), path, pt.subspan(first_bytes + 64)));
  ASSERT_TRUE(writer_->AddAuxtrace(core.id, path));
  ASSERT_TRUE(writer_->Finish());
  const auto trace = LoadTrace();
  auto streams = TraceStreams::Create(*trace, {});
  ASSERT_TRUE(streams) << streams.error().message;
  EXPECT_TRUE(Pull(**streams, Tid(100)).insns.empty());
  const Seen seen = Pull(**streams, Tid(200));
  const auto& truth = truth_[Tid(200)];
  ASSERT_GT(seen.insns.size(), 10000u);
  ASSERT_LT(seen.insns.size(), truth.size());
  EXPECT_TRUE(
      std::equal(seen.insns.rbegin(), seen.insns.rend(), truth.rbegin()));
}

TEST_F(ProcessesTest, AProcessOfWhichNothingIsKnownIsAGap) {
  std::array<Task, 3> tasks = {Task{.process = 100, .thread = Tid(100)},
                               Task{.process = 200, .thread = Tid(200)},
                               Task{.process = 300, .thread = Tid(300)}};
  TestCore& core = cores_[0];
  Exec(tasks[0], core, 1);
  Exec(tasks[1], core, 4);
  tasks[2].program = 3;
  for (Task& task : tasks) {
    In(core, task);
    RunToCall(core, 3);
    Return(core);
    RunToCall(core, 2);
    Out(core);
  }
  Finish();
  const auto trace = LoadTrace();
  auto streams = TraceStreams::Create(*trace, {});
  ASSERT_TRUE(streams) << streams.error().message;
  EXPECT_EQ(Pull(**streams, Tid(100)).insns, truth_[Tid(100)]);
  EXPECT_EQ(Pull(**streams, Tid(200)).insns, truth_[Tid(200)]);
  const Seen unknown = Pull(**streams, Tid(300));
  EXPECT_TRUE(unknown.insns.empty());
  ASSERT_EQ(unknown.gaps.size(), 1u);
  EXPECT_EQ(unknown.gaps[0].cause, GapCause::kCodeMissing);
  EXPECT_THAT(unknown.gaps[0].detail, testing::HasSubstr("process 300"));
}

TEST_F(ProcessesTest, GapsOfOthersDoNotCountForAProcess) {
  std::array<Task, 3> tasks = {Task{.process = 100, .thread = Tid(100)},
                               Task{.process = 200, .thread = Tid(200)},
                               Task{.process = 300, .thread = Tid(300)}};
  Exec(tasks[0], cores_[0], 1);
  Exec(tasks[1], cores_[0], 4);
  tasks[2].program = 3;  // of which nothing is known
  for (const size_t task : {0, 2, 1, 2, 0}) {
    // The unknown one runs twice: two gaps.
    TestCore& core = cores_[task == 2 ? 1 : 0];
    In(core, tasks[task]);
    RunToCall(core, 3);
    Out(core);
  }
  Finish();
  const auto trace = LoadTrace();
  const auto count = [&](int32_t failing) {
    const auto counts = CountGaps(*trace, Tid(failing), {}, nullptr);
    EXPECT_TRUE(counts) << counts.error().message;
    return *counts;
  };
  for (const int32_t failing : {100, 200}) {
    EXPECT_EQ(count(failing).gaps, 0u);
    EXPECT_EQ(count(failing).gaps_at_failure, 0u);
    EXPECT_EQ(count(failing).gaps_of_others, 2u);
    EXPECT_EQ(count(failing).instructions,
              truth_[Tid(100)].size() + truth_[Tid(200)].size());
  }
  for (const int32_t failing : {300, 0, 999}) {
    EXPECT_EQ(count(failing).gaps, 2u) << failing;
    EXPECT_EQ(count(failing).gaps_at_failure, 2u) << failing;
    EXPECT_EQ(count(failing).gaps_of_others, 0u) << failing;
  }
}

TEST_F(ProcessesTest, MissingFilesOfOthersAreANumber) {
  Task one{.process = 100, .thread = Tid(100)};
  Task two{.process = 200, .thread = Tid(200)};
  Exec(one, cores_[0], 1);
  Exec(two, cores_[0], 2);
  fs::remove(PathOf(2));
  Finish();
  const auto trace = LoadTrace();
  const MissingImages of_one = FindMissing(*trace, Tid(100));
  EXPECT_TRUE(of_one.needed.empty());
  EXPECT_EQ(of_one.others, 1u);
  const MissingImages of_two = FindMissing(*trace, Tid(200));
  ASSERT_EQ(of_two.needed.size(), 1u);
  EXPECT_EQ(of_two.needed[0].path, PathOf(2));
  EXPECT_EQ(of_two.others, 0u);
  EXPECT_EQ(FindMissing(*trace, Tid(0)).needed.size(), 1u);
}

}  // namespace
}  // namespace clew::decoder
