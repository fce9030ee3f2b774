// Goal: the portfolio's answers are those of enumeration, also for accesses of
// mixed sizes and for unknown initial memory; its explanations name evidence
// that really conflicts; Z3 keeps to its limits.
// Method: property against enumeration (for unknowns: of all their values as
// well); for explanations, removal of what they name.

#include "solver/portfolio.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "common/os/deadline.h"
#include "common/os/syscall_filter.h"
#include "common/sanitizer.h"
#include "constraints/check_order.h"
#include "constraints/trace_executor.h"
#include "constraints/verdict.h"
#include "solver/explain.h"
#include "solver/smt/z3_backend.h"
#include "tests/solver/time_limit.h"
#include "tests/support/brute_force.h"
#include "tests/support/random_traces.h"
#include "tests/support/toy_programs.h"

namespace clew::solver {
namespace {

using constraints::CheckOrder;
using constraints::TraceExecutor;
using constraints::Verdict;
using test::ToyTrace;

constexpr uint64_t kStepsMax = 1'000'000;
constexpr double kMicrosecondS = 1e-6;

uint64_t StartSeed() {
  const char* text = std::getenv("CLEW_TEST_SEED");
  return text == nullptr ? 4711 : std::strtoull(text, nullptr, 0);
}

PortfolioReport MustSolveTrace(const ToyTrace& toy,
                               const PortfolioOptions& options) {
  auto report = SolveTrace(toy.trace, options);
  EXPECT_TRUE(report.has_value()) << report.error().message;
  return report ? *report : PortfolioReport{};
}

// The verdict is right, and a witness stands.
void ExpectRight(const ToyTrace& toy, const PortfolioReport& report,
                 bool truth) {
  ASSERT_NE(report.verdict, Verdict::kUnknown) << report.why;
  EXPECT_EQ(report.verdict == Verdict::kWitness, truth) << report.engine;
  if (report.verdict == Verdict::kWitness) {
    constraints::Assignment unknowns;
    for (const auto& [var, value] : report.unknowns) {
      unknowns.Set(var, value);
    }
    const Status checked = CheckOrder(toy.trace, *report.accesses, unknowns);
    EXPECT_TRUE(checked.has_value()) << checked.error().message;
  }
}

TEST(PortfolioTest, MixedSizesAgreeWithEnumeration) {
  int counts[2] = {};
  for (uint64_t i = 0; i < 300; ++i) {
    SCOPED_TRACE(fmt::format("CLEW_TEST_SEED={} + {}", StartSeed(), i));
    ToyTrace toy = test::MakeRandomTrace(StartSeed() + i, false);
    ASSERT_TRUE(CheckOrder(toy.trace, toy.recorded).has_value());
    if (i % 2 == 1) {
      (void)test::Falsify(toy, i);
    }
    const auto truth = test::HasWitness(toy.trace, kStepsMax);
    ASSERT_TRUE(truth.has_value());
    ++counts[*truth ? 1 : 0];
    ExpectRight(toy, MustSolveTrace(toy, {.explain_seconds = 0}), *truth);
    const Z3Answer z3 = SolveWithZ3InProcess(toy.trace, {});
    EXPECT_EQ(z3.verdict == Verdict::kWitness, *truth);
    if (HasFailure()) {
      return;
    }
  }
  std::printf("%d satisfiable, %d not\n", counts[1], counts[0]);
  EXPECT_GT(counts[0], 40);
  EXPECT_GT(counts[1], 100);
}

TEST(PortfolioTest, UnknownMemoryAgreesWithEnumeration) {
  int counts[2] = {};
  for (uint64_t i = 0; i < 24; ++i) {
    SCOPED_TRACE(fmt::format("CLEW_TEST_SEED={} + {}", StartSeed(), i));
    ToyTrace toy = test::MakeRandomTrace(StartSeed() + i, true);
    if (i % 2 == 1) {
      (void)test::Falsify(toy, i);
    }
    bool truth = false;
    for (uint64_t value = 0; value < 256 && !truth; ++value) {
      constraints::Assignment unknown;
      unknown.Set(constraints::VarId(0), value);
      truth = test::HasWitness(toy.trace, kStepsMax, unknown).value();
    }
    ++counts[truth ? 1 : 0];
    ExpectRight(toy, MustSolveTrace(toy, {.explain_seconds = 0}), truth);
    if (HasFailure()) {
      return;
    }
  }
  EXPECT_GT(counts[0], 2);
  EXPECT_GT(counts[1], 8);
}

TEST(PortfolioTest, AnExplanationConflictsByItselfAndNeedsEveryGroup) {
  int explained = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    test::ToyOptions options;
    options.toy = seed % 2 == 0 ? test::Toy::kBbuf : test::Toy::kSpin;
    options.threads = 2;
    options.iterations = 1;
    options.seed = seed;
    options.window = 8;
    ToyTrace toy = MakeToy(options);
    (void)test::Falsify(toy, seed);
    const PortfolioReport report =
        MustSolveTrace(toy, {.seconds = kLimitS, .explain_seconds = kLimitS});
    if (report.verdict != Verdict::kUnsat) {
      continue;
    }
    ++explained;
    ASSERT_FALSE(report.conflicting.empty());
    EXPECT_EQ(report.conflicting.size(), report.conflicting_labels.size());
    constraints::ConstraintTrace core = toy.trace;
    for (uint32_t g = 0; g < toy.trace.groups.size(); ++g) {
      if (std::ranges::find(report.conflicting, constraints::GroupId(g)) ==
          report.conflicting.end()) {
        core = WithoutGroup(core, constraints::GroupId(g));
      }
    }
    const Deadline deadline(kLimitS);
    EXPECT_EQ(Decide(core, {}, deadline), Verdict::kUnsat);
    for (constraints::GroupId group : report.conflicting) {
      EXPECT_EQ(Decide(WithoutGroup(core, group), {}, deadline),
                Verdict::kWitness);
    }
  }
  EXPECT_GT(explained, 3);
}

// An executor that takes marks as strictly as the interface allows.
class StrictMarks final : public constraints::Executor {
 public:
  explicit StrictMarks(constraints::Executor& inner) : inner_(inner) {}

  uint32_t actor_count() const override { return inner_.actor_count(); }
  bool Finished(uint32_t t) const override { return inner_.Finished(t); }
  bool Enabled(uint32_t t) const override {
    EXPECT_FALSE(undefined_) << "used after a contradiction";
    return inner_.Enabled(t);
  }
  constraints::NextStep Next(uint32_t t) const override {
    EXPECT_FALSE(undefined_) << "used after a contradiction";
    EXPECT_FALSE(inner_.Finished(t));
    return inner_.Next(t);
  }
  constraints::StepResult Step(uint32_t t) override {
    EXPECT_FALSE(undefined_) << "used after a contradiction";
    const auto result = inner_.Step(t);
    undefined_ = result == constraints::StepResult::kContradiction;
    return result;
  }
  Mark SetMark() override {
    EXPECT_FALSE(undefined_) << "used after a contradiction";
    marks_.push_back(inner_.SetMark());
    digests_.push_back(inner_.StateDigest());
    return marks_.size() - 1;
  }
  void RollBack(Mark mark) override {
    ASSERT_LT(mark, marks_.size()) << "a mark that was forgotten";
    inner_.RollBack(marks_[mark]);
    EXPECT_EQ(inner_.StateDigest(), digests_[mark]);
    marks_.resize(mark + 1);
    digests_.resize(mark + 1);
    undefined_ = false;
  }
  uint64_t StateDigest() const override { return inner_.StateDigest(); }
  double GuessKey(uint32_t t) const override { return inner_.GuessKey(t); }
  uint64_t EndViolations() override { return inner_.EndViolations(); }
  const constraints::Contradiction& last_contradiction() const override {
    return inner_.last_contradiction();
  }

 private:
  constraints::Executor& inner_;
  std::vector<Mark> marks_;
  std::vector<uint64_t> digests_;
  bool undefined_ = false;
};

TEST(PortfolioTest, EnginesShareAnExecutorWithoutTouchingForgottenMarks) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    test::ToyOptions options;
    options.iterations = 60;
    options.seed = seed;
    options.evidence_bits = 2;  // without times: every engine gets its turns
    const ToyTrace toy = MakeToy(options);
    auto inner = TraceExecutor::Create(toy.trace);
    ASSERT_TRUE(inner.has_value());
    StrictMarks executor(**inner);
    const uint64_t start = executor.StateDigest();
    // Turns so short at first that each engine has several before the end, on
    // any machine.
    const auto report = RunPortfolio(executor, {},
                                     {.seconds = kLimitS,
                                      .nodes_max = 50'000,
                                      .use_z3 = false,
                                      .first_slice_seconds = kMicrosecondS});
    ASSERT_TRUE(report.has_value());
    if (report->verdict != Verdict::kWitness) {
      EXPECT_GT(report->runs.size(), 10u);
      EXPECT_EQ(executor.StateDigest(), start);
    }
  }
}

TEST(PortfolioTest, LimitsEndInUnknownWithAReason) {
  test::ToyOptions options;
  options.iterations = 200;
  options.evidence_bits = 1;  // without times: out of reach
  const ToyTrace toy = MakeToy(options);
  PortfolioOptions limits = {.seconds = 1.5, .use_z3 = false};
  const PortfolioReport by_time = MustSolveTrace(toy, limits);
  EXPECT_EQ(by_time.verdict, Verdict::kUnknown);
  EXPECT_EQ(by_time.why, "time limit");
  RecordProperty("seconds", std::to_string(by_time.seconds));
  limits = {.seconds = kLimitS, .nodes_max = 1000, .use_z3 = false};
  const PortfolioReport by_nodes = MustSolveTrace(toy, limits);
  EXPECT_EQ(by_nodes.verdict, Verdict::kUnknown);
  EXPECT_EQ(by_nodes.why, "node limit");
}

TEST(PortfolioTest, Z3IsStoppedAtItsTimeAndItsMemory) {
  test::ToyOptions options;
  options.iterations = 100;
  options.values = false;
  const ToyTrace toy = MakeToy(options);
  Z3Options z3;
  z3.encoding = EncodingKind::kClap;
  z3.sources = SourcesOf(EncodingKind::kClap);
  z3.order_only = true;
  z3.seconds = 1;
  const auto by_time = SolveWithZ3(toy.trace, z3);
  ASSERT_TRUE(by_time.has_value());
  EXPECT_EQ(by_time->verdict, Verdict::kUnknown);
  RecordProperty("seconds", std::to_string(by_time->seconds));
  if (kAddressSanitizer) {
    GTEST_SKIP() << "no memory limit under AddressSanitizer";
  }
  z3.seconds = kLimitS;
  z3.memory_bytes_max = uint64_t{80} << 20;
  const auto by_memory = SolveWithZ3(toy.trace, z3);
  ASSERT_TRUE(by_memory.has_value());
  EXPECT_EQ(by_memory->verdict, Verdict::kUnknown);
  EXPECT_NE(by_memory->why.find("memory"), std::string::npos) << by_memory->why;
}

volatile sig_atomic_t ended_by = 0;  // the signal that ended the last child

void KeepHowAChildEnded(int, siginfo_t* info, void*) {
  ended_by = info->si_code == CLD_KILLED ? info->si_status : 0;
}

// As a child of the collector, which may send no signal to another process. Z3
// has to end itself, in the middle of what it does.
TEST(PortfolioTest, Z3EndsAtItsTimeWhereNobodyMayKillIt) {
  test::ToyOptions options;
  options.iterations = 10000;
  options.values = false;
  const ToyTrace toy = MakeToy(options);  // too large to be encoded in time
  Z3Options z3;
  z3.encoding = EncodingKind::kClap;
  z3.sources = SourcesOf(EncodingKind::kClap);
  z3.order_only = true;
  z3.seconds = 0.01;
  const pid_t confined = fork();
  ASSERT_GE(confined, 0);
  if (confined == 0) {
    struct sigaction action = {};
    action.sa_sigaction = KeepHowAChildEnded;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGCHLD, &action, nullptr);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (EnterSyscallFilter({.fork = true}) != 0) {
      _exit(9);
    }
    const auto answer = SolveWithZ3(toy.trace, z3);
    _exit(!answer || answer->why != "time limit" ? 1
          : ended_by != SIGALRM                  ? 2
                                                 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(confined, &status, 0), confined);
  EXPECT_EQ(status, 0);
}

TEST(CheckerTest, RefusesEveryKindOfWrongOrder) {
  test::ToyOptions options;
  options.toy = test::Toy::kBbuf;
  options.iterations = 2;
  options.window = 8;
  options.cores = 2;
  const ToyTrace toy = MakeToy(options);
  EXPECT_TRUE(CheckOrder(toy.trace, toy.recorded).has_value());
  constraints::AccessOrder wrong = toy.recorded;
  wrong.pop_back();
  EXPECT_FALSE(CheckOrder(toy.trace, wrong).has_value()) << "too short";
  wrong = toy.recorded;
  wrong.push_back(0);
  EXPECT_FALSE(CheckOrder(toy.trace, wrong).has_value()) << "too long";
  wrong = toy.recorded;
  std::ranges::stable_sort(wrong);
  EXPECT_FALSE(CheckOrder(toy.trace, wrong).has_value()) << "against time";
  test::ToyOptions no_time = options;
  no_time.window = 0;
  no_time.cores = 0;
  const ToyTrace other = MakeToy(no_time);
  wrong = other.recorded;
  std::ranges::stable_sort(wrong);
  EXPECT_FALSE(CheckOrder(other.trace, wrong).has_value()) << "wrong values";
}

// A trace that breaks its own rules, or cannot be made at all, is no reason to
// stop looking: the engines that run the program do not need it.
TEST(PortfolioTest, AnErrorOfTheTraceEndsZ3Alone) {
  ToyTrace toy = test::MakeRandomTrace(1, false);
  auto executor = TraceExecutor::Create(toy.trace);
  ASSERT_TRUE(executor.has_value());
  constraints::ConstraintTrace invalid = toy.trace;
  invalid.path.push_back({.condition = nullptr,
                          .thread = 0,
                          .after_accesses = 0,
                          .group = toy.trace.time_group,
                          .ip = {}});
  const TraceProvider providers[] = {
      []() -> Result<constraints::ConstraintTrace> {
        return Unsupported("no trace today");
      },
      [&]() -> Result<constraints::ConstraintTrace> { return invalid; }};
  for (const TraceProvider& provider : providers) {
    const auto found = RunPortfolio(**executor, provider, {});
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(found->verdict, Verdict::kWitness);
    (*executor)->RollBack(0);

    PortfolioOptions only_z3;
    only_z3.use_search = only_z3.use_repair = only_z3.use_beam = false;
    EXPECT_FALSE(RunPortfolio(**executor, provider, only_z3).has_value());
  }
}

TEST(PortfolioTest, ItIsToldThatZ3EndedWithAnError) {
  ToyTrace toy;
  uint64_t seed = 0;
  do {
    toy = test::MakeRandomTrace(++seed, false);
    (void)test::Falsify(toy, seed);
  } while (test::HasWitness(toy.trace, kStepsMax).value_or(true));
  auto executor = TraceExecutor::Create(toy.trace);
  ASSERT_TRUE(executor.has_value());
  PortfolioOptions options;
  options.seconds = kLimitS;
  options.nodes_max = 2000;  // many turns, so that Z3 is among them
  options.first_slice_seconds = kMicrosecondS;
  options.use_search = options.use_beam = false;  // repair refutes nothing
  const auto report = RunPortfolio(
      **executor,
      []() -> Result<constraints::ConstraintTrace> {
        return Unsupported("no trace today");
      },
      options);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->verdict, Verdict::kUnknown);
  EXPECT_EQ(std::ranges::count(report->runs, "no trace today", &EngineRun::why),
            1);
}

}  // namespace
}  // namespace clew::solver
