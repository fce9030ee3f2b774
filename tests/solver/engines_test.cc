// Goal: on small instances every engine says what enumeration of all
// interleavings says, and what it calls a witness the independent checker
// accepts.
// Method: property; toys under a random scheduler, half of them with falsified
// evidence. Oracle: enumeration without any reduction. The seed is printed. The
// limits are of work, and the same on every machine; those of time are for a
// search that never ends.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <z3++.h>

#include <cstdlib>

#include "common/os/deadline.h"
#include "constraints/check_order.h"
#include "constraints/trace_executor.h"
#include "constraints/verdict.h"
#include "solver/search/beam.h"
#include "solver/search/depth_first.h"
#include "solver/search/repair.h"
#include "solver/smt/z3_backend.h"
#include "tests/solver/time_limit.h"
#include "tests/support/brute_force.h"
#include "tests/support/toy_programs.h"

namespace clew::solver {
namespace {

using constraints::CheckOrder;
using constraints::ToAccessOrder;
using constraints::TraceExecutor;
using constraints::Verdict;
using test::MakeToy;
using test::Toy;
using test::ToyOptions;
using test::ToyTrace;

constexpr uint64_t kMemoryBytes = 64 << 20;
// Of Z3, in its own count ("rlimit"), for each question: some seconds. A few
// take a thousand times as long as the others.
constexpr int kZ3Work = 20'000'000;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

// Different in shape with every number.
ToyOptions SmallOptions(uint64_t seed) {
  Random random(seed);
  ToyOptions options;
  options.toy = static_cast<Toy>(random.Below(7));
  options.seed = seed;
  options.threads = 2 + static_cast<uint32_t>(random.Below(2));
  options.iterations =
      options.threads == 2 ? 1 + static_cast<uint32_t>(random.Below(3)) : 1;
  options.window =
      random.Below(2) == 0 ? 0 : 3 + static_cast<uint32_t>(random.Below(6));
  options.slack = options.window == 0 || random.Below(2) == 0 ? 0 : 2;
  options.cores = random.Below(2) == 0 ? 0 : 2;
  options.switch_every = 3;
  options.words = 4;
  options.evidence_bits = static_cast<uint32_t>(random.Below(3));
  options.final_memory = random.Below(2) == 0;
  options.final_sum = random.Below(2) == 0;
  return options;
}

SearchAnswer RunDepthFirst(const ToyTrace& toy, bool back_jumps,
                           uint32_t holds) {
  auto executor = TraceExecutor::Create(toy.trace);
  EXPECT_TRUE(executor.has_value()) << executor.error().message;
  DigestSet dead(kMemoryBytes);
  const Deadline deadline(kLimitS);
  DepthFirstOptions options;
  options.back_jumps = back_jumps;
  options.holds_per_1000 = holds;
  options.seed = 7;
  DepthFirst search(**executor, dead, options);
  SearchAnswer answer = search.Run(Deadline(0));  // stops, and goes on later
  return answer.verdict == Verdict::kUnknown && answer.why == "time limit"
             ? search.Run(deadline)
             : answer;
}

// A search after others that jumped, held threads back and shared its memo.
SearchAnswer RunWithSharedMemo(const ToyTrace& toy) {
  auto executor = TraceExecutor::Create(toy.trace);
  DigestSet dead(kMemoryBytes);
  const Deadline deadline(kLimitS);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    DepthFirstOptions options;
    options.back_jumps = true;
    options.holds_per_1000 = static_cast<uint32_t>(100 * seed);
    options.seed = seed;
    options.nodes_max = 200;
    SearchAnswer answer = DepthFirst(**executor, dead, options).Run(deadline);
    if (answer.verdict != Verdict::kUnknown) {
      return answer;
    }
  }
  return DepthFirst(**executor, dead, {}).Run(deadline);
}

void ExpectAgrees(const ToyTrace& toy, const SearchAnswer& answer,
                  bool satisfiable, bool complete, const char* engine) {
  if (answer.verdict == Verdict::kUnknown) {
    EXPECT_FALSE(complete) << engine << " gave up: " << answer.why;
    return;
  }
  EXPECT_EQ(answer.verdict == Verdict::kWitness, satisfiable) << engine;
  if (answer.verdict == Verdict::kWitness) {
    const Status checked = CheckOrder(toy.trace, ToAccessOrder(answer.witness));
    EXPECT_TRUE(checked.has_value()) << engine << checked.error().message;
  }
}

// Z3 in this process: the instances are small. False if it does not know.
bool ExpectZ3Agrees(const ToyTrace& toy, EncodingKind encoding,
                    bool satisfiable) {
  Z3Options options;
  options.encoding = encoding;
  options.sources = {true, true};  // all evidence, whatever the encoding
  options.seconds = kLimitS;
  const Z3Answer answer = SolveWithZ3InProcess(toy.trace, options);
  SCOPED_TRACE(ToString(encoding));
  if (answer.verdict == Verdict::kUnknown) {
    return false;
  }
  EXPECT_EQ(answer.verdict == Verdict::kWitness, satisfiable);
  if (answer.verdict == Verdict::kWitness) {
    constraints::Assignment unknowns;
    const Status checked = CheckOrder(toy.trace, answer.order, unknowns);
    EXPECT_TRUE(checked.has_value()) << checked.error().message;
  }
  return true;
}

SearchAnswer RunBeam(const ToyTrace& toy, size_t width) {
  auto executor = TraceExecutor::Create(toy.trace);
  const Deadline deadline(kLimitS);
  return Beam(**executor, {.width_min = width, .width_max = width * 16},
              deadline)
      .Run();
}

TEST(EnginesTest, AgreeWithEnumeration) {
  z3::set_param("rlimit", kZ3Work);
  const uint64_t start = FromEnvironment("CLEW_TEST_SEED", 20260);
  const uint64_t instances = FromEnvironment("CLEW_TEST_INSTANCES", 60);
  uint64_t satisfiable_count = 0;
  uint64_t unsatisfiable_count = 0;
  uint64_t repaired = 0;
  uint64_t z3_unknown = 0;
  for (uint64_t i = 0; i < instances; ++i) {
    SCOPED_TRACE(fmt::format("CLEW_TEST_SEED={} instance {}", start, i));
    const ToyOptions options = SmallOptions(start + i);
    ToyTrace toy = MakeToy(options);
    const Status recorded = CheckOrder(toy.trace, toy.recorded);
    ASSERT_TRUE(recorded.has_value()) << recorded.error().message;
    if (i % 2 == 1) {
      (void)test::Falsify(toy, start + i);
    }
    const auto truth = test::HasWitness(toy.trace, 300'000);
    if (!truth) {
      continue;  // too large to enumerate
    }
    (*truth ? satisfiable_count : unsatisfiable_count) += 1;
    ExpectAgrees(toy, RunDepthFirst(toy, false, 0), *truth, true, "search");
    ExpectAgrees(toy, RunDepthFirst(toy, false, 200), *truth, true, "held");
    ExpectAgrees(toy, RunDepthFirst(toy, true, 0), *truth, false, "directed");
    ExpectAgrees(toy, RunWithSharedMemo(toy), *truth, true, "shared memo");
    ExpectAgrees(toy, RunBeam(toy, 4096), *truth, true, "wide beam");
    ExpectAgrees(toy, RunBeam(toy, 1), *truth, false, "narrow beam");
    z3_unknown += ExpectZ3Agrees(toy, EncodingKind::kReadFrom, *truth) ? 0 : 1;
    if (i % 4 < 2) {  // the slow ones
      z3_unknown += ExpectZ3Agrees(toy, EncodingKind::kClap, *truth) ? 0 : 1;
      z3_unknown += ExpectZ3Agrees(toy, EncodingKind::kTime, *truth) ? 0 : 1;
    }
    auto executor = TraceExecutor::Create(toy.trace);
    const Deadline deadline(kLimitS);
    const SearchAnswer repair =
        Repair(**executor, {.seed = i + 1, .moves_max = 2000}).Run(deadline);
    ExpectAgrees(toy, repair, *truth, false, "repair");
    repaired += repair.verdict == Verdict::kWitness ? 1 : 0;
    if (HasFailure()) {
      return;
    }
  }
  fmt::print("{} satisfiable ({} repaired), {} not; z3 unknown {}\n",
             satisfiable_count, repaired, unsatisfiable_count, z3_unknown);
  EXPECT_LT(z3_unknown, instances / 15);
  EXPECT_GT(satisfiable_count, instances / 3);
  EXPECT_GT(unsatisfiable_count, instances / 10);
  EXPECT_GT(repaired * 10, satisfiable_count * 9);
}

}  // namespace
}  // namespace clew::solver
