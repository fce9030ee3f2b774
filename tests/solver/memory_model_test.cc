// Goal: a memory model is asked wherever a process runs (machine, search,
// checker, replay), and nothing else in them assumes that stores are seen at
// once. Method: a model that delays nothing and counts, with which everything
// comes out as without; and one that delays (a queue for each thread), with
// which the search reaches, besides all that it reaches without, exactly the
// outcome of the store-buffering litmus test that sequential consistency
// forbids; what it finds, the checker and the replay follow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "follower/describe_run.h"
#include "follower/run_schedule.h"
#include "machine/memory_models.h"
#include "machine/store_buffer.h"
#include "replayer/enforce.h"
#include "replayer/process_target.h"
#include "solver/check.h"
#include "solver/solve.h"
#include "tests/support/guest_cases.h"
#include "tests/support/guest_racy.h"
#include "tests/support/order_explorer.h"

namespace clew::solver {
namespace {

using Explorer = test::OrderExplorer;

using machine::Memory;
using machine::StoreBuffer;
using machine::WaitingStore;
using test::GuestRecording;

struct Counts {
  uint64_t stores = 0;
  uint64_t loads = 0;
  bool operator==(const Counts&) const = default;
};

class CountingBuffer final : public StoreBuffer {
 public:
  explicit CountingBuffer(Counts& counts) : counts_(counts) {}
  std::unique_ptr<StoreBuffer> Clone() const override {
    return std::make_unique<CountingBuffer>(counts_);
  }
  void Store(const WaitingStore& store, std::span<const std::byte> bytes,
             Memory& memory) override {
    ++counts_.stores;
    EXPECT_TRUE(memory.Store(store.addr, bytes));
  }
  void Forward(uint64_t, std::span<std::byte>) const override {
    ++counts_.loads;
  }
  std::optional<WaitingStore> Oldest(uint32_t) const override {
    return std::nullopt;
  }
  void Flush(uint32_t, Memory&) override { ADD_FAILURE() << "nothing waits"; }
  std::optional<uint32_t> OldestQueue() const override { return std::nullopt; }
  uint64_t Digest() const override { return 0; }

 private:
  Counts& counts_;
};

class CountingModel final : public machine::MemoryModel {
 public:
  std::unique_ptr<StoreBuffer> NewBuffer() const override {
    return std::make_unique<CountingBuffer>(counts_);
  }
  // What was counted since the last call.
  Counts Take() { return std::exchange(counts_, {}); }

 private:
  mutable Counts counts_;
};

const machine::MemoryModel* Tso() {
  return machine::MemoryModelOf(MemoryModelKind::kTso);
}

follower::Recording WithModel(const GuestRecording& guest,
                              const machine::MemoryModel* model) {
  follower::Recording recording = guest.recording();
  recording.model = model;
  return recording;
}

TEST(MemoryModelTest, OneThatDelaysNothingIsAskedEverywhereAndChangesNothing) {
  for (const test::GuestCase& guest_case : test::kGuestCases) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
      const auto plain = Solve(guest.recording(), {}, nullptr);
      ASSERT_TRUE(plain) << plain.error().message;
      ASSERT_EQ(plain->verdict, constraints::Verdict::kWitness);

      CountingModel model;
      const auto recording = WithModel(guest, &model);
      const auto modelled = Solve(recording, {}, nullptr);
      ASSERT_TRUE(modelled) << modelled.error().message;
      ASSERT_EQ(modelled->verdict, constraints::Verdict::kWitness);
      EXPECT_EQ(modelled->schedule.final_memory_digest,
                plain->schedule.final_memory_digest);

      // Checker and replay run the same instructions, so they count the same.
      model.Take();
      const auto check =
          CheckSchedule(recording, modelled->schedule.steps, nullptr);
      ASSERT_TRUE(check) << check.error().message;
      EXPECT_EQ(check->disagreement, std::nullopt);
      const Counts checked = model.Take();
      EXPECT_GT(checked.stores, 0u);
      EXPECT_GT(checked.loads, 0u);
      const auto replay =
          replayer::Enforce(recording, modelled->schedule, nullptr, nullptr);
      ASSERT_TRUE(replay) << replay.error().message;
      EXPECT_EQ(replay->divergence, std::nullopt);
      EXPECT_EQ(model.Take(), checked);
      EXPECT_EQ(replay->memory_digest, plain->schedule.final_memory_digest);
    }
  }
}

GuestRecording StoreBuffering(test::StoreBarrier between) {
  return GuestRecording::Make(test::GuestStoreBuffering,
                              static_cast<uint64_t>(between),
                              {.seed = 3, .window_ticks = 0});
}

size_t Ends(const Explorer& explorer) { return explorer.ends().size(); }

// Store buffering: x = 1; r0 = y beside y = 1; r1 = x. Of the four values of
// (r0, r1), sequential consistency forbids (0, 0), and TSO nothing.
TEST(MemoryModelTest, AQueueReachesOneOutcomeMoreAndEachIsCheckedAndReplayed) {
  const GuestRecording guest = GuestRecording::Make(
      test::GuestStoreBuffering, 0, {.seed = 3, .window_ticks = 0});
  const Explorer plain(guest.recording());
  EXPECT_EQ(plain.ends().size(), 3u);

  const auto recording = WithModel(guest, Tso());
  Explorer queued(recording);
  EXPECT_EQ(queued.ends().size(), 4u);
  std::set<uint64_t> memories;
  int64_t flushes = 0;
  for (const auto& [digest, order] : queued.ends()) {
    const Schedule schedule = {.steps = queued.ScheduleOf(order), .engine = {}};
    const auto check = CheckSchedule(recording, schedule.steps, nullptr);
    ASSERT_TRUE(check) << check.error().message;
    EXPECT_EQ(check->disagreement, std::nullopt);
    const auto replay =
        replayer::Enforce(recording, schedule, nullptr, nullptr);
    ASSERT_TRUE(replay) << replay.error().message;
    EXPECT_EQ(replay->divergence, std::nullopt);
    EXPECT_EQ(replay->memory_digest, check->memory_digest);
    memories.insert(check->memory_digest);
    flushes += std::ranges::count(schedule.steps, ScheduleStep::Kind::kFlush,
                                  &ScheduleStep::kind);
  }
  EXPECT_EQ(memories.size(), 4u);
  EXPECT_GT(flushes, 0);  // otherwise their steps were not tested
}

TEST(MemoryModelTest, AProcessWithoutBuffersRefusesTheirSteps) {
  const GuestRecording guest = GuestRecording::Make(
      test::GuestStoreBuffering, 0, {.seed = 3, .window_ticks = 0});
  const std::vector<ScheduleStep> steps =
      FlushedAfterEachRun(guest.truth().schedule);
  const auto replay = replayer::Enforce(
      guest.recording(), {.steps = steps, .engine = {}}, nullptr, nullptr);
  ASSERT_FALSE(replay);
  EXPECT_THAT(replay.error().message, testing::HasSubstr("step 1: flush"));
  const auto with =
      replayer::Enforce(WithModel(guest, Tso()), {.steps = steps, .engine = {}},
                        nullptr, nullptr);
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_EQ(with->divergence, std::nullopt);
  EXPECT_EQ(with->memory_digest, guest.truth().memory_digest);
}

// What has to find the stores of the thread lets them leave before it.
TEST(MemoryModelTest, FencesLockedInstructionsAndCallsDrainTheQueue) {
  using test::StoreBarrier;
  for (const StoreBarrier between :
       {StoreBarrier::kFence, StoreBarrier::kLocked, StoreBarrier::kCall}) {
    const GuestRecording guest = StoreBuffering(between);
    const Explorer plain(guest.recording());
    const Explorer queued(WithModel(guest, Tso()));
    EXPECT_EQ(Ends(queued), Ends(plain)) << static_cast<int>(between);
  }
}

// In the debugger a position is the state behind all steps that come before its
// instruction, from wherever it is reached.
TEST(MemoryModelTest, APositionIsOneStateInTheDebugger) {
  const GuestRecording guest = StoreBuffering(test::StoreBarrier::kNone);
  const auto recording = WithModel(guest, Tso());
  Explorer queued(recording);
  for (const auto& [digest, order] : queued.ends()) {
    const std::vector<ScheduleStep> steps = queued.ScheduleOf(order);
    auto target = replayer::ProcessTarget::Open(recording, steps, {});
    ASSERT_TRUE(target) << target.error().message;
    const auto begin = (*target)->Save();
    const auto session = follower::OpenedRecording::Open(recording).value();
    follower::Process process = session->start();
    for (const ScheduleStep& step : steps) {
      const size_t thread = process.tape().IndexOf(step.thread).value();
      ASSERT_TRUE(process.Take(thread, step));
      for (const bool anew : {false, true}) {
        if (anew) {
          (*target)->Load(*begin);
        }
        ASSERT_TRUE((*target)->Run(process.retired_total(), {}, false));
        const auto shown = (*target)->ReadRegisters(step.thread);
        if (shown) {
          EXPECT_EQ(shown->gpr, process.thread(thread).registers.gpr)
              << "position " << process.retired_total();
        }
      }
    }
  }
}

// Recordings of runs under TSO that fail only there.
struct LateCase {
  const char* name;
  void (*entry)(uint64_t);
  uint64_t rounds;
  size_t recordings;
};
void PrintTo(const LateCase& late, std::ostream* out) { *out << late.name; }
constexpr uint64_t kLateSeedsMax = 400;

GuestRecording RecordLate(const LateCase& late, uint64_t seed) {
  return GuestRecording::Make(late.entry, late.rounds,
                              {.seed = seed,
                               .quantum_insns_max = 12,
                               .insns_max = 20'000,
                               .model = Tso()});
}

class LateTest : public testing::TestWithParam<LateCase> {};

TEST_P(LateTest, WhatFailsOnlyWithStoreBuffersIsSolvedOnlyWithThem) {
  const LateCase& late = GetParam();
  size_t failing = 0;
  for (uint64_t seed = 1; seed <= kLateSeedsMax && failing < late.recordings;
       ++seed) {
    const GuestRecording guest = RecordLate(late, seed);
    if (guest.recording().failure.kind != FailureKind::kExit) {
      continue;
    }
    ++failing;
    SCOPED_TRACE(fmt::format("seed {}", seed));
    // The evidence is that of a run under TSO.
    const auto recording = WithModel(guest, Tso());
    const auto truth =
        CheckSchedule(recording, guest.truth().schedule, nullptr);
    ASSERT_TRUE(truth) << truth.error().message;
    EXPECT_EQ(truth->disagreement, std::nullopt);
    EXPECT_EQ(truth->memory_digest, guest.truth().memory_digest);

    SolveOptions options;
    options.time_limit_s = 3;
    const auto plain = Solve(guest.recording(), options, nullptr);
    ASSERT_TRUE(plain) << plain.error().message;
    EXPECT_NE(plain->verdict, constraints::Verdict::kWitness);

    options.time_limit_s = 600;  // where time is to decide nothing
    const auto solved = SolveUnder(
        guest.recording(), {MemoryModelKind::kSc, MemoryModelKind::kTso},
        options, nullptr);
    ASSERT_TRUE(solved) << solved.error().message;
    ASSERT_EQ(solved->verdict, constraints::Verdict::kWitness);
    EXPECT_EQ(solved->schedule.model, MemoryModelKind::kTso);
    const auto check =
        CheckSchedule(recording, solved->schedule.steps, nullptr);
    ASSERT_TRUE(check) << check.error().message;
    EXPECT_EQ(check->disagreement, std::nullopt);
    const auto replay =
        replayer::Enforce(recording, solved->schedule, nullptr, nullptr);
    ASSERT_TRUE(replay) << replay.error().message;
    EXPECT_EQ(replay->divergence, std::nullopt);
    fmt::print("{}, seed {}: {} under sc, {} in {:.2f} s under tso\n",
               late.name, seed, constraints::ToString(plain->verdict),
               constraints::ToString(solved->verdict), solved->seconds);
  }
  EXPECT_EQ(failing, late.recordings);
}

constexpr auto kName = [](const testing::TestParamInfo<LateCase>& late) {
  return std::string(late.param.name);
};

INSTANTIATE_TEST_SUITE_P(Programs, LateTest,
                         testing::Values(LateCase{"dekker", test::GuestDekker,
                                                  1, 1}),
                         kName);

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(
    More, LateTest,
    testing::Values(LateCase{"increments", test::GuestIncrements, 3, 2},
                    LateCase{"dekker", test::GuestDekker, 1, 2},
                    LateCase{"peterson", test::GuestPeterson, 1, 2}),
    kName);

// In the debugger a store is seen by its own thread first, and a watchpoint
// stops where others see it.
TEST(MemoryModelTest, TheDebuggerShowsTheThreadsViewAndStopsAtFlushes) {
  const GuestRecording guest = StoreBuffering(test::StoreBarrier::kNone);
  const auto recording = WithModel(guest, Tso());
  Explorer queued(recording);
  size_t late = 0;
  size_t stops = 0;
  for (const auto& [digest, order] : queued.ends()) {
    const std::vector<ScheduleStep> steps = queued.ScheduleOf(order);
    auto target = replayer::ProcessTarget::Open(recording, steps, {});
    ASSERT_TRUE(target) << target.error().message;
    std::optional<std::pair<Tid, machine::WaitingStore>> waiting;
    const auto begin = (*target)->Save();
    while ((*target)->position() < (*target)->end() && !waiting) {
      ASSERT_TRUE((*target)->Run((*target)->position() + 1, {}, false));
      const follower::Process& process = (*target)->process();
      for (size_t i = 0; i < process.thread_count(); ++i) {
        const auto store = process.OldestStore(i);
        uint64_t value = 0;
        if (store && process.memory().Load(store->addr, value) && value == 0) {
          waiting = {process.tid(i), *store};
        }
      }
    }
    if (!waiting) {
      continue;
    }
    const auto& [thread, store] = *waiting;
    uint64_t own = 0;
    uint64_t all = 0;
    const TraceeAddr addr(store.addr);
    (*target)->ReadMemoryOf(thread, addr,
                            std::as_writable_bytes(std::span(&own, 1)));
    (*target)->ReadMemory(addr, std::as_writable_bytes(std::span(&all, 1)));
    late += own != all ? 1 : 0;
    replayer::StopPoints points;
    points.AddWatchpoint({.addr = store.addr,
                          .size_bytes = store.size_bytes,
                          .kind = replayer::WatchKind::kWrite});
    const auto stop = (*target)->Run((*target)->end(), points, false);
    ASSERT_TRUE(stop) << stop.error().message;
    uint64_t now = 0;
    (*target)->ReadMemory(addr, std::as_writable_bytes(std::span(&now, 1)));
    if (own != all) {
      EXPECT_EQ(stop->end, replayer::RunEnd::kWatchpoint);
      EXPECT_EQ(now, own);
      stops += stop->store_of == thread ? 1 : 0;
    }
    (*target)->Load(*begin);
  }
  EXPECT_GT(late, 0u);
  EXPECT_GT(stops, 0u);
}

}  // namespace
}  // namespace clew::solver
