// Goal: the timeline over a recorded process shows the run that happened, in
// both directions, with breakpoints and watchpoints, at speed.
// Method: guest programs recorded by the guest recorder; the oracle is the same
// schedule followed one instruction at a time without any stop point, and the
// recorder's own final memory. Seeds are printed.
#include "replayer/process_target.h"

#include <asm/unistd_64.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "common/digest.h"
#include "replayer/enforce.h"
#include "replayer/start_stack.h"
#include "replayer/timeline.h"
#include "tests/support/guest_programs.h"
#include "tests/support/guest_recorder.h"

namespace clew::replayer {
namespace {

using clew::test::GuestRecorderOptions;
using clew::test::GuestRecording;
using testing::HasSubstr;

struct Program {
  const char* name;
  void (*entry)(uint64_t);
  uint64_t rounds;
};

constexpr Program kPrograms[] = {
    {"mutex", clew::test::GuestMutexCounter, 12},
    {"lost update", clew::test::GuestLostUpdate, 20},
    {"order violation", clew::test::GuestOrderViolation, 8},
    {"deadlock", clew::test::GuestDeadlock, 8},
};

// Joins the recorder's blocks of one instruction each into longer ones, as a
// decoder makes them: where an instruction had the same successor every time
// and is not a SYSCALL. Guest code is code of this program, so it can be looked
// at. `across_branches` joins whatever the successors: not what a decoder does,
// but good to follow as long as there is no breakpoint.
void JoinBlocks(GuestRecording& guest, bool across_branches) {
  std::map<TraceeAddr, std::set<TraceeAddr>> successors;
  for (const auto& [tid, blocks] : guest.blocks()) {
    for (size_t i = 1; i < blocks.size(); ++i) {
      successors[blocks[i - 1].ip].insert(blocks[i].ip);
    }
  }
  const auto ends = [&](TraceeAddr ip) {
    constexpr std::array<uint8_t, 2> kSyscall = {0x0f, 0x05};
    return (successors[ip].size() != 1 && !across_branches) ||
           std::memcmp(reinterpret_cast<const void*>(ip.as_int()),
                       kSyscall.data(), kSyscall.size()) == 0;
  };
  for (auto& [tid, blocks] : guest.blocks()) {
    std::vector<StreamBlock> joined;
    bool open = false;  // the last joined block may grow
    for (const StreamBlock& block : blocks) {
      if (open && joined.back().slice == block.slice) {
        ++joined.back().insn_count;
        joined.back().time.hi = block.time.hi;
        joined.back().interrupted = block.interrupted;
      } else {
        joined.push_back(block);
      }
      open = !block.interrupted && !ends(block.ip);
    }
    blocks = std::move(joined);
  }
}

GuestRecording Record(const Program& program, uint64_t seed,
                      bool across_branches = false) {
  GuestRecorderOptions options;
  options.seed = seed;
  GuestRecording guest =
      GuestRecording::Make(program.entry, program.rounds, options);
  JoinBlocks(guest, across_branches);
  return guest;
}

std::unique_ptr<ProcessTarget> Open(const GuestRecording& guest) {
  auto target =
      ProcessTarget::Open(guest.recording(), guest.truth().schedule, {});
  EXPECT_TRUE(target.has_value()) << target.error().message;
  return target ? std::move(*target) : nullptr;
}

uint64_t CounterAddr() {
  return reinterpret_cast<uint64_t>(&clew::test::guest_counter);
}

// What a debugger could see at one position.
struct Seen {
  std::vector<machine::Registers> registers;  // of the existing threads
  uint64_t counter = 0;
  bool operator==(const Seen&) const = default;
};

Seen Look(const ReplayTarget& target) {
  Seen seen;
  for (const TargetThread& thread : target.Threads()) {
    seen.registers.push_back(*target.ReadRegisters(thread.tid));
  }
  std::array<std::byte, sizeof(seen.counter)> bytes = {};
  EXPECT_EQ(target.ReadMemory(TraceeAddr(CounterAddr()), bytes), bytes.size());
  std::memcpy(&seen.counter, bytes.data(), bytes.size());
  return seen;
}

// The run, one instruction at a time; ips[p] is where the p-th one is.
struct Record1 {
  std::vector<Seen> seen;
  std::vector<uint64_t> ips;
};

Record1 Follow(ProcessTarget& target) {
  Record1 record;
  const auto start = target.Save();
  record.seen.push_back(Look(target));
  while (target.position() < target.end()) {
    const Tid next = *target.ThreadAt(target.position());
    record.ips.push_back(target.ReadRegisters(next)->rip);
    const auto ran = target.Run(target.position() + 1, {}, true);
    EXPECT_TRUE(ran.has_value()) << ran.error().message;
    if (!ran) {
      break;
    }
    record.seen.push_back(Look(target));
  }
  target.Load(*start);
  return record;
}

TEST(ProcessTarget, EndsInTheRecordersMemory) {
  for (const Program& program : kPrograms) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", program.name, seed));
      const GuestRecording guest = Record(program, seed);
      const auto target = Open(guest);
      ASSERT_NE(target, nullptr);
      ASSERT_EQ(target->end(), guest.truth().insns);
      const auto ran = target->Run(target->end(), {}, true);
      ASSERT_TRUE(ran.has_value()) << ran.error().message;
      machine::Memory memory = target->process().memory();
      memory.EnableDigest();
      EXPECT_EQ(memory.digest(), guest.truth().memory_digest);
      EXPECT_FALSE(target->Threads().empty());
    }
  }
}

TEST(ProcessTarget, SeekShowsWhatFollowingShowed) {
  for (const Program& program : kPrograms) {
    const uint64_t seed = 3;
    SCOPED_TRACE(fmt::format("{}, seed {}", program.name, seed));
    const GuestRecording guest = Record(program, seed);
    const auto target = Open(guest);
    const Record1 record = Follow(*target);
    Timeline timeline(*target, {.checkpoint_insns = 200});
    Random random(seed);
    for (int i = 0; i < 100; ++i) {
      const Position to = random.Below(target->end() + 1);
      ASSERT_TRUE(timeline.Seek(to).has_value());
      ASSERT_EQ(Look(*target), record.seen[to]) << to;
    }
  }
}

TEST(ProcessTarget, BreakpointsStopEverywhereTheyAreExecuted) {
  for (const Program& program : kPrograms) {
    const uint64_t seed = 2;
    SCOPED_TRACE(fmt::format("{}, seed {}", program.name, seed));
    const GuestRecording guest = Record(program, seed);
    const auto target = Open(guest);
    const Record1 record = Follow(*target);
    Timeline timeline(*target, {.checkpoint_insns = 300});
    Random random(seed);
    for (int i = 0; i < 10; ++i) {
      StopPoints points;
      points.AddBreakpoint(record.ips[random.Below(record.ips.size())]);
      std::vector<Position> wanted;
      for (Position p = 0; p < record.ips.size(); ++p) {
        if (points.HasBreakpoint(record.ips[p])) {
          wanted.push_back(p);
        }
      }
      ASSERT_TRUE(timeline.Seek(0).has_value());
      std::vector<Position> found;
      while (true) {
        const auto stop = timeline.RunForward(points, std::nullopt, {});
        ASSERT_TRUE(stop.has_value()) << stop.error().message;
        if (stop->cause == StopCause::kEnd) {
          break;
        }
        ASSERT_EQ(stop->cause, StopCause::kBreakpoint);
        found.push_back(timeline.position());
        ASSERT_TRUE(timeline.RunForward({}, stop->thread, {}).has_value());
      }
      ASSERT_EQ(found, wanted);
      ASSERT_EQ(timeline.RunBackward(points, {})->cause,
                StopCause::kBreakpoint);
      ASSERT_EQ(timeline.position(), wanted.back());
      ASSERT_EQ(Look(*target), record.seen[wanted.back()]);
    }
  }
}

TEST(ProcessTarget, AWatchpointFindsEveryChangeForwardsAndBackwards) {
  const uint64_t seed = 4;
  SCOPED_TRACE(seed);
  const GuestRecording guest = Record(kPrograms[1], seed);
  const auto target = Open(guest);
  const Record1 record = Follow(*target);
  std::vector<Position> wanted;
  for (Position p = 1; p < record.seen.size(); ++p) {
    if (record.seen[p].counter != record.seen[p - 1].counter) {
      wanted.push_back(p - 1);
    }
  }
  ASSERT_GT(wanted.size(), 10u);
  Timeline timeline(*target, {.checkpoint_insns = 250});
  StopPoints points;
  points.AddWatchpoint({CounterAddr(), 8, WatchKind::kWrite});
  std::vector<Position> found;
  while (timeline.RunForward(points, std::nullopt, {})->cause ==
         StopCause::kWatchpoint) {
    found.push_back(timeline.position() - 1);
  }
  ASSERT_EQ(found, wanted);
  while (!wanted.empty()) {
    const auto stop = timeline.RunBackward(points, {});
    ASSERT_EQ(stop->cause, StopCause::kWatchpoint);
    ASSERT_EQ(timeline.position(), wanted.back());
    ASSERT_EQ(stop->thread, *target->ThreadAt(wanted.back()));
    wanted.pop_back();
  }
  EXPECT_EQ(timeline.RunBackward(points, {})->cause, StopCause::kBegin);
}

// Adds to every system call of one thread that returns a write by the kernel;
// not to futex, which writes nothing.
class WritingKernel final : public InputSource {
 public:
  WritingKernel(std::unique_ptr<InputSource> inputs, Tid thread, uint64_t addr)
      : inputs_(std::move(inputs)), thread_(thread), addr_(addr) {}
  Result<std::optional<InputRecord>> Next(Tid thread) override {
    auto record = inputs_->Next(thread);
    if (record && *record && thread == thread_) {
      auto* const call = std::get_if<SyscallInput>(&**record);
      if (call != nullptr && call->result && call->number != __NR_futex) {
        ++written_;
        const auto bytes = std::as_bytes(std::span(&written_, 1));
        call->writes.push_back(
            {TraceeAddr(addr_), {bytes.begin(), bytes.end()}});
      }
    }
    return record;
  }

 private:
  std::unique_ptr<InputSource> inputs_;
  Tid thread_;
  uint64_t addr_;
  uint64_t written_ = 0;
};

volatile uint64_t kernel_word;  // no guest program knows it

class KernelWatchTest : public testing::TestWithParam<WatchKind> {};

// Both what a call writes when it returns at once and what it writes when it
// returns after others have run; by the value, and by the access.
TEST_P(KernelWatchTest, AWatchpointFindsWhatTheKernelWrites) {
  const GuestRecording guest = Record(kPrograms[0], 1, true);
  const uint64_t addr = reinterpret_cast<uint64_t>(&kernel_word);
  const Tid first = guest.truth().schedule.front().thread;
  follower::Recording recording = guest.recording();
  recording.open_inputs = [&]() -> Result<std::unique_ptr<InputSource>> {
    CLEW_ASSIGN_OR_RETURN(inputs, guest.recording().open_inputs());
    return std::make_unique<WritingKernel>(std::move(inputs), first, addr);
  };
  auto target = ProcessTarget::Open(recording, guest.truth().schedule, {});
  ASSERT_TRUE(target.has_value());
  const auto word = [&] {
    uint64_t value = 0;
    EXPECT_EQ(
        (*target)->ReadMemory(TraceeAddr(addr),
                              std::as_writable_bytes(std::span(&value, 1))),
        sizeof(value));
    return value;
  };
  const auto start = (*target)->Save();
  std::vector<Position> wanted;
  for (uint64_t before = word(); (*target)->position() < (*target)->end();) {
    const auto at = (*target)->position();
    ASSERT_TRUE((*target)->Run(at + 1, {}, true).has_value());
    if (word() != before) {
      wanted.push_back(at);
      before = word();
    }
  }
  ASSERT_GT(wanted.size(), 2u);
  (*target)->Load(*start);
  Timeline timeline(**target);
  StopPoints points;
  points.AddWatchpoint({addr, 8, GetParam()});
  std::vector<Position> found;
  while (timeline.RunForward(points, std::nullopt, {})->cause ==
         StopCause::kWatchpoint) {
    found.push_back(timeline.position() - 1);
  }
  EXPECT_EQ(found, wanted);
}

INSTANTIATE_TEST_SUITE_P(ProcessTarget, KernelWatchTest,
                         testing::Values(WatchKind::kWrite, WatchKind::kAccess),
                         [](const auto& parameter) {
                           return parameter.param == WatchKind::kWrite
                                      ? "ByValue"
                                      : "ByAccess";
                         });

TEST(ProcessTarget, AWatchpointThatNothingTouchesDoesNotStop) {
  const GuestRecording guest = Record(kPrograms[0], 1);
  const auto target = Open(guest);
  Timeline timeline(*target);
  StopPoints points;
  points.AddWatchpoint({8, 8, WatchKind::kAccess});
  EXPECT_EQ(timeline.RunForward(points, std::nullopt, {})->cause,
            StopCause::kEnd);
}

TEST(ProcessTarget, AWrongScheduleDivergesAndSaysWhere) {
  const GuestRecording guest = Record(kPrograms[1], 4);
  auto steps = guest.truth().schedule;
  // The first thread all at once: it waits for threads that have not run.
  const Tid first = steps.front().thread;
  uint64_t last = 0;
  for (const ScheduleStep& step : steps) {
    last = step.thread == first ? step.until_insn : last;
  }
  auto target = ProcessTarget::Open(
      guest.recording(), {{.thread = first, .until_insn = last}}, {});
  ASSERT_TRUE(target.has_value());
  Timeline timeline(**target);
  const auto stop = timeline.RunForward({}, std::nullopt, {});
  ASSERT_FALSE(stop.has_value());
  EXPECT_THAT(stop.error().message, HasSubstr("the replay diverges: thread"));
  EXPECT_EQ(timeline.position(), 0u);
}

TEST(ProcessTarget, AScheduleOfUnknownThreadsIsRefused) {
  const GuestRecording guest = Record(kPrograms[0], 1);
  const auto target = ProcessTarget::Open(
      guest.recording(), {{.thread = Tid(77), .until_insn = 1}}, {});
  ASSERT_FALSE(target.has_value());
  EXPECT_EQ(target.error().message,
            "schedule.pb: step 0: thread is 77, wanted one that has a stream");
}

TEST(ProcessTarget, AScheduleWithAFlushIsRefused) {
  const GuestRecording guest = Record(kPrograms[0], 1);
  const Tid first = guest.recording().start.first.thread;
  const auto target = ProcessTarget::Open(
      guest.recording(),
      {{.thread = first, .until_insn = 1},
       {.kind = ScheduleStep::Kind::kFlush, .thread = first, .until_insn = 1}},
      {});
  ASSERT_FALSE(target.has_value());
  EXPECT_THAT(target.error().message,
              HasSubstr("schedule.pb: step 1: flush is true"));
}

TEST(Enforce, EndsLikeTheRecordingAndSaysWhatItSaw) {
  for (const Program& program : kPrograms) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", program.name, seed));
      const GuestRecording guest = Record(program, seed);
      const auto report = Enforce(
          guest.recording(), {.steps = guest.truth().schedule, .engine = {}},
          nullptr, nullptr);
      ASSERT_TRUE(report.has_value()) << report.error().message;
      EXPECT_EQ(report->divergence.value_or(""), "");
      EXPECT_EQ(report->insns, guest.truth().insns);
      EXPECT_EQ(report->memory_digest, guest.truth().memory_digest);
    }
  }
}

TEST(Enforce, AScheduleThatIsCutShortOrWrongDiverges) {
  const GuestRecording guest = Record(kPrograms[1], 4);
  auto steps = guest.truth().schedule;
  steps.pop_back();
  auto report = Enforce(guest.recording(), {.steps = steps, .engine = {}},
                        nullptr, nullptr);
  ASSERT_TRUE(report.has_value());
  EXPECT_THAT(report->divergence.value_or(""), HasSubstr("does not"));
  steps.insert(steps.begin(), guest.truth().schedule.back());
  report = Enforce(guest.recording(), {.steps = steps, .engine = {}}, nullptr,
                   nullptr);
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->divergence.has_value());
  EXPECT_NE(StepsDigest(steps), StepsDigest(guest.truth().schedule));
}

TEST(StartStack, AuxiliaryValuesLieAboveArgumentsAndEnvironment) {
  machine::Memory memory;
  memory.Map(0x7000, 0x1000, kProtRead | kProtWrite);
  const std::vector<uint64_t> words = {
      2, 0x100, 0x200, 0, 0x300, 0x400, 0x500, 0, 6, 4096, 9, 0x401000, 0, 0};
  ASSERT_TRUE(memory.Poke(0x7100, std::as_bytes(std::span(words))));
  const StartStack stack = ReadStartStack(memory, 0x7100);
  EXPECT_EQ(stack.entry, 0x401000u);
  ASSERT_EQ(stack.auxv.size(), 6 * sizeof(uint64_t));
  EXPECT_EQ(std::memcmp(stack.auxv.data(), &words[8], stack.auxv.size()), 0);
}

TEST(StartStack, OtherMemoryHasNone) {
  machine::Memory memory;
  memory.Map(0x7000, 0x1000, kProtRead | kProtWrite);
  EXPECT_TRUE(ReadStartStack(memory, 0x9000).auxv.empty());
  // No AT_NULL before the mapping ends.
  const std::vector<uint64_t> ones(0x1000 / 8, 1);
  ASSERT_TRUE(memory.Poke(0x7000, std::as_bytes(std::span(ones))));
  EXPECT_TRUE(ReadStartStack(memory, 0x7000).auxv.empty());
}

TEST(StartStack, TheFileAtAnAddressIsTheMappedOne) {
  StartState start;
  start.segments.push_back({.addr = TraceeAddr(0x1000),
                            .size_bytes = 0x1000,
                            .name = "/bin/p",
                            .bytes = {}});
  start.segments.push_back({.addr = TraceeAddr(0x3000),
                            .size_bytes = 0x1000,
                            .name = "[stack]",
                            .bytes = {}});
  EXPECT_EQ(FileAt(start, 0x1fff), "/bin/p");
  EXPECT_EQ(FileAt(start, 0x2000), "");
  EXPECT_EQ(FileAt(start, 0x3000), "");
}

}  // namespace
}  // namespace clew::replayer
