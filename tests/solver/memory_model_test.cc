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
#include <deque>
#include <set>
#include <vector>

#include "common/digest.h"
#include "follower/describe_run.h"
#include "follower/run_schedule.h"
#include "machine/store_buffer.h"
#include "replayer/enforce.h"
#include "replayer/process_target.h"
#include "solver/check.h"
#include "solver/search/guess_run.h"
#include "solver/search/machine_executor.h"
#include "solver/solve.h"
#include "tests/support/guest_cases.h"
#include "tests/support/guest_racy.h"

namespace clew::solver {
namespace {

using constraints::StepResult;
using machine::Memory;
using machine::StoreBuffer;
using machine::WaitingStore;
using testing::GuestRecording;

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
  std::optional<WaitingStore> Oldest() const override { return std::nullopt; }
  void Flush(Memory&) override { ADD_FAILURE() << "nothing waits"; }
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

// Stores leave in the order in which they came (x86's TSO).
class QueueBuffer final : public StoreBuffer {
 public:
  std::unique_ptr<StoreBuffer> Clone() const override {
    return std::make_unique<QueueBuffer>(*this);
  }
  void Store(const WaitingStore& store, std::span<const std::byte> bytes,
             Memory&) override {
    queue_.push_back({store, {bytes.begin(), bytes.end()}});
  }
  void Forward(uint64_t addr, std::span<std::byte> bytes) const override {
    for (const auto& [store, stored] : queue_) {
      for (size_t i = 0; i < stored.size(); ++i) {
        if (const uint64_t at = store.addr + i - addr; at < bytes.size()) {
          bytes[at] = stored[i];
        }
      }
    }
  }
  std::optional<WaitingStore> Oldest() const override {
    return queue_.empty() ? std::nullopt : std::optional(queue_.front().store);
  }
  void Flush(Memory& memory) override {
    EXPECT_TRUE(memory.Store(queue_.front().store.addr,
                             std::span<const std::byte>(queue_.front().bytes)));
    queue_.pop_front();
  }
  uint64_t Digest() const override {
    uint64_t digest = kEmptyDigest;
    for (const auto& [store, bytes] : queue_) {
      digest = clew::Digest(bytes, digest ^ MixBits(store.addr));
    }
    return queue_.empty() ? 0 : digest;
  }

 private:
  struct Entry {
    WaitingStore store;
    std::vector<std::byte> bytes;
  };
  std::deque<Entry> queue_;
};

class QueueModel final : public machine::MemoryModel {
 public:
  std::unique_ptr<StoreBuffer> NewBuffer() const override {
    return std::make_unique<QueueBuffer>();
  }
};

follower::Recording WithModel(const GuestRecording& guest,
                              const machine::MemoryModel* model) {
  follower::Recording recording = guest.recording();
  recording.model = model;
  return recording;
}

TEST(MemoryModelTest, OneThatDelaysNothingIsAskedEverywhereAndChangesNothing) {
  for (const testing::GuestCase& guest_case : testing::kGuestCases) {
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

GuestRecording StoreBuffering(testing::StoreBarrier between) {
  return GuestRecording::Make(testing::GuestStoreBuffering,
                              static_cast<uint64_t>(between),
                              {.seed = 3, .window_ticks = 0});
}

// Every order that the executor permits; each state once.
class Explorer {
 public:
  explicit Explorer(const follower::Recording& recording)
      : session_(follower::OpenedRecording::Open(recording).value()),
        words_(session_->start().thread_count(), recording.clock_slack_ticks),
        executor_(Learned(recording), recording.failure,
                  recording.clock_slack_ticks, words_,
                  Cuts(session_->start().thread_count()), {}) {
    origin_ = executor_.SetMark();
    Explore();
  }

  // The orders that reach different ends.
  const std::map<uint64_t, constraints::StepOrder>& ends() const {
    return ends_;
  }
  std::vector<ScheduleStep> ScheduleOf(const constraints::StepOrder& order) {
    executor_.RollBack(origin_);
    return executor_.ScheduleOf(order);
  }

 private:
  const follower::Process& Learned(const follower::Recording& recording) {
    plain_.push_back(session_->start().SequentiallyConsistent());
    LearnAlongPaths(*FirstPoint(plain_.back(), 0, {}), ~uint64_t{0},
                    recording.failure, words_, nullptr);
    return session_->start();
  }

  void Explore() {
    if (!visited_.insert(executor_.StateDigest()).second) {
      return;
    }
    bool all_finished = true;
    // Buffers first, or a locked instruction has drained them.
    for (uint32_t actor = executor_.actor_count(); actor-- > 0;) {
      all_finished &= executor_.Finished(actor);
      if (executor_.Finished(actor) || !executor_.Enabled(actor)) {
        continue;
      }
      const auto mark = executor_.SetMark();
      if (executor_.Step(actor) != StepResult::kContradiction) {
        order_.push_back(actor);
        Explore();
        order_.pop_back();
      }
      executor_.RollBack(mark);
    }
    if (all_finished && executor_.EndViolations() == 0) {
      ends_.emplace(executor_.StateDigest(), order_);
    }
  }

  std::unique_ptr<follower::OpenedRecording> session_;
  WordTable words_;
  std::vector<follower::Process> plain_;
  MachineExecutor executor_;
  constraints::Executor::Mark origin_ = 0;
  constraints::StepOrder order_;
  std::set<uint64_t> visited_;
  std::map<uint64_t, constraints::StepOrder> ends_;
};

size_t Ends(const Explorer& explorer) { return explorer.ends().size(); }

// Store buffering: x = 1; r0 = y beside y = 1; r1 = x. Of the four values of
// (r0, r1), sequential consistency forbids (0, 0), and TSO nothing.
TEST(MemoryModelTest, AQueueReachesOneOutcomeMoreAndEachIsCheckedAndReplayed) {
  const GuestRecording guest = GuestRecording::Make(
      testing::GuestStoreBuffering, 0, {.seed = 3, .window_ticks = 0});
  const Explorer plain(guest.recording());
  EXPECT_EQ(plain.ends().size(), 3u);

  const QueueModel model;
  const auto recording = WithModel(guest, &model);
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
      testing::GuestStoreBuffering, 0, {.seed = 3, .window_ticks = 0});
  const std::vector<ScheduleStep> steps =
      FlushedAfterEachRun(guest.truth().schedule);
  const auto replay = replayer::Enforce(
      guest.recording(), {.steps = steps, .engine = {}}, nullptr, nullptr);
  ASSERT_FALSE(replay);
  EXPECT_THAT(replay.error().message, ::testing::HasSubstr("step 1: flush"));
  const QueueModel model;
  const auto with =
      replayer::Enforce(WithModel(guest, &model),
                        {.steps = steps, .engine = {}}, nullptr, nullptr);
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_EQ(with->divergence, std::nullopt);
  EXPECT_EQ(with->memory_digest, guest.truth().memory_digest);
}

// What has to find the stores of the thread lets them leave before it.
TEST(MemoryModelTest, FencesLockedInstructionsAndCallsDrainTheQueue) {
  using testing::StoreBarrier;
  for (const StoreBarrier between :
       {StoreBarrier::kFence, StoreBarrier::kLocked, StoreBarrier::kCall}) {
    const GuestRecording guest = StoreBuffering(between);
    const Explorer plain(guest.recording());
    const QueueModel model;
    const Explorer queued(WithModel(guest, &model));
    EXPECT_EQ(Ends(queued), Ends(plain)) << static_cast<int>(between);
  }
}

// In the debugger a position is the state behind all steps that come before its
// instruction, from wherever it is reached.
TEST(MemoryModelTest, APositionIsOneStateInTheDebugger) {
  const GuestRecording guest = StoreBuffering(testing::StoreBarrier::kNone);
  const QueueModel model;
  const auto recording = WithModel(guest, &model);
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

}  // namespace
}  // namespace clew::solver
