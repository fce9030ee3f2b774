// Goal: no verdict on a run that truly happened is wrong. What is recorded here
// happened, so "no interleaving agrees" would be false of every recording, an
// error would not be an answer, and a witness has to replay.
// Method: property over seeded recordings of many programs at several timings,
// CLEW_TRUTH_RUNS of them (30). The true schedule, which the recorder writes
// down, has to pass the checker; then the built program solves the bundle, for
// at most CLEW_TRUTH_LIMIT_S seconds (5), and replays what it found. Run
// number n has the seed CLEW_TRUTH_SEED + n (1), which settles program, timing,
// cores and quantum.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <charconv>
#include <cstdlib>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "follower/bundle/bundle_recording.h"
#include "recorder/software/record.h"
#include "recorder/software/until_fail.h"
#include "solver/check.h"
#include "tests/e2e/clew_command.h"
#include "tests/e2e/truth/true_schedule.h"
#include "tests/support/silence.h"

namespace clew::e2e {
namespace {

constexpr const char* kPrograms[] = {
    "bank",         "bbuf",           "buffer5", "deadlock",
    "dekker",       "double_checked", "handler", "increment",
    "late_hash",    "lost_wakeup",    "order",   "pfscan",
    "phases",       "pipe_order",     "poll",    "publish",
    "publish_late", "queue",          "racey",   "racey_branches",
    "rwlock",       "sbuf",           "seqlock", "spin_lock",
    "ticket",       "treiber",        "uaf",     "given",
    "signalled"};

struct Timing {
  const char* name;
  bool packets;
  uint32_t mtc_period;
};
constexpr Timing kTimings[] = {{"mtc 6", true, 6},
                               {"mtc 3", true, 3},
                               {"mtc 0", true, 0},
                               {"none", false, 0}};

uint64_t FromEnvironment(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr) {
    return otherwise;
  }
  uint64_t value = 0;
  const std::string_view digits(text);
  const auto [end, error] =
      std::from_chars(digits.begin(), digits.end(), value);
  EXPECT_TRUE(error == std::errc() && end == digits.end())
      << variable << " is '" << text << "', wanted: a number";
  return value;
}

// User and system time of the children that have ended.
double ChildCpuSeconds() {
  rusage usage = {};
  EXPECT_EQ(getrusage(RUSAGE_CHILDREN, &usage), 0);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What became of the recordings of one program, or at one timing.
struct Tally {
  int runs = 0;
  int failing = 0;
  int solved = 0;
  int memory_exact = 0;
  int unknown = 0;
  int wrong = 0;
  double cpu_s = 0;
};

struct Trial {
  uint64_t seed = 0;
  const char* program = nullptr;
  Timing timing = {};
  recorder::RecordOptions options;
};

// Programs come in turn, so that any number of runs has about as many of each;
// timings so that in four rounds each program has all.
Trial Choose(uint64_t seed, const Scratch& scratch) {
  std::mt19937_64 random(seed);
  const auto draw = [&](uint32_t least, uint32_t most) {
    return least + static_cast<uint32_t>(random() % (most - least + 1));
  };
  Trial trial{
      .seed = seed,
      .program = kPrograms[seed % std::size(kPrograms)],
      .timing =
          kTimings[(seed + seed / std::size(kPrograms)) % std::size(kTimings)],
      .options = {}};
  trial.options.command = {Tracee(trial.program)};
  trial.options.output = scratch.Path("b.clew");
  trial.options.turns_path = scratch.Path("turns");
  trial.options.source = draw(0, 1) == 0 ? recorder::SoftwareSource::kTracer
                                         : recorder::SoftwareSource::kQemu;
  trial.options.plugin_path = Built("bin/clew-qemu-plugin.so");
  trial.options.seed = random() % 1'000'000;
  if (draw(0, 1) == 0) {  // otherwise as the recorder has them
    trial.options.cores = draw(2, 6);
    trial.options.quantum_insns = draw(40, 800);
  }
  trial.options.timing = trial.timing.packets;
  trial.options.mtc_period = trial.timing.mtc_period;
  trial.options.timeout_s = 20;
  return trial;
}

// Every other run is one that fails, if a dozen tries give one.
Result<recorder::RecordOutcome> Record(const Trial& trial) {
  constexpr uint32_t kTries = 12;
  const test::Silence silence;
  if (trial.seed % 2 == 0) {
    auto outcome = recorder::RecordUntilFail(trial.options,
                                             {.tries_max = kTries}, nullptr);
    if (outcome || outcome.error().code != ErrorCode::kLimit) {
      return outcome;
    }
  }
  return recorder::Record(trial.options);
}

// Why the checker refuses what truly happened; empty if it does not.
Result<std::string> RefusalOfTruth(const Trial& trial) {
  CLEW_ASSIGN_OR_RETURN(turns, ReadTurns(trial.options.turns_path));
  CLEW_ASSIGN_OR_RETURN(opened, follower::OpenRecording(trial.options.output));
  CLEW_ASSIGN_OR_RETURN(
      report,
      solver::CheckSchedule(opened->recording, TrueSchedule(turns), nullptr));
  if (report.disagreement) {
    return *report.disagreement;
  }
  const auto& memory = report.memory;
  return memory.bytes_equal == memory.bytes_compared
             ? std::string()
             : fmt::format("{} of {} bytes of memory agree", memory.bytes_equal,
                           memory.bytes_compared);
}

class TruthRuns : public testing::Test {
 protected:
  void One(uint64_t seed) {
    const Scratch scratch;
    const Trial trial = Choose(seed, scratch);
    SCOPED_TRACE(fmt::format("seed {}: {}, timing {}", seed, trial.program,
                             trial.timing.name));
    Tally tally{.runs = 1};
    RecordAndSolve(trial, tally);
    tally.wrong = tally.solved + tally.unknown == 1 ? 0 : 1;
    Add(by_program_[trial.program], tally);
    Add(by_timing_[trial.timing.name], tally);
    Add(all_, tally);
  }

  void PrintTable() const {
    fmt::print("{:16} {:>5} {:>8} {:>7} {:>13} {:>8} {:>6} {:>8} {:>10}\n", "",
               "runs", "failing", "solved", "memory-exact", "unknown", "wrong",
               "CPU s", "CPU s each");
    for (const auto& [name, tally] : by_program_) {
      PrintRow(name, tally);
    }
    for (const Timing& timing : kTimings) {
      const auto found = by_timing_.find(timing.name);
      if (found != by_timing_.end()) {
        PrintRow(std::string("timing ") + timing.name, found->second);
      }
    }
    PrintRow("all", all_);
    std::fflush(stdout);
  }

 private:
  static void Add(Tally& to, const Tally& tally) {
    to.runs += tally.runs;
    to.failing += tally.failing;
    to.solved += tally.solved;
    to.memory_exact += tally.memory_exact;
    to.unknown += tally.unknown;
    to.wrong += tally.wrong;
    to.cpu_s += tally.cpu_s;
  }

  static void PrintRow(const std::string& name, const Tally& tally) {
    fmt::print("{:16} {:5} {:8} {:7} {:13} {:8} {:6} {:8.1f} {:10.2f}\n", name,
               tally.runs, tally.failing, tally.solved, tally.memory_exact,
               tally.unknown, tally.wrong, tally.cpu_s,
               tally.cpu_s / tally.runs);
  }

  static void RecordAndSolve(const Trial& trial, Tally& tally) {
    const auto outcome = Record(trial);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    tally.failing = outcome->failure.kind == FailureKind::kNone ? 0 : 1;
    const auto refusal = RefusalOfTruth(trial);
    ASSERT_TRUE(refusal.has_value()) << refusal.error().message;
    ASSERT_EQ(*refusal, "") << "the checker refuses what truly happened";
    Solve(trial.options.output, tally);
  }

  static void Solve(const std::string& bundle, Tally& tally) {
    const uint64_t limit_s = FromEnvironment("CLEW_TRUTH_LIMIT_S", 5);
    const double before = ChildCpuSeconds();
    const ProgramOutput solved = Clew(
        {"solve", "--json", "--time-limit", fmt::to_string(limit_s), bundle});
    tally.cpu_s = ChildCpuSeconds() - before;
    const auto json =
        nlohmann::json::parse(solved.text, nullptr, /*allow_exceptions=*/false);
    ASSERT_FALSE(json.is_discarded()) << "error: " << solved.text;
    const std::string verdict = json.value("verdict", "");
    ASSERT_NE(verdict, "unsat") << "false unsat: " << solved.text;
    ASSERT_NE(verdict, "model-differs") << "false unsat: " << solved.text;
    if (verdict == "unknown") {
      tally.unknown = 1;
      return;
    }
    ASSERT_EQ(verdict, "witness") << "error: " << solved.text;
    const ProgramOutput replayed = Clew({"replay", "--check", "2", bundle});
    ASSERT_EQ(replayed.exit_status, kExitOk)
        << "wrong witness: " << replayed.text;
    tally.solved = 1;
    tally.memory_exact = json.value("grade", "") == "memory-exact" ? 1 : 0;
  }

  std::map<std::string, Tally> by_program_;
  std::map<std::string, Tally> by_timing_;
  Tally all_;
};

TEST_F(TruthRuns, NoVerdictIsWrong) {
  const uint64_t first = FromEnvironment("CLEW_TRUTH_SEED", 1);
  const uint64_t runs = FromEnvironment("CLEW_TRUTH_RUNS", 30);
  fmt::print("{} runs from seed {}\n", runs, first);
  for (uint64_t i = 0; i < runs; ++i) {
    One(first + i);
  }
  PrintTable();
}

}  // namespace
}  // namespace clew::e2e
