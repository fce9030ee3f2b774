// Goal: under each memory model the product reaches exactly the outcomes that
// the model permits. Method: named programs, most of them of the literature
// (the Intel manual's examples of 8.2.3, Owens, Sarkar, Sewell, "A better x86
// memory model: x86-TSO", TPHOLs 2009; Alglave, Maranget, Tautschnig, "Herding
// cats", TOPLAS 2014), with the number of outcomes of each; and random small
// ones. Both are explored exhaustively by the search's executor, whose
// schedules are then run, and compared, outcome by outcome, with a reference
// that enumerates the states of the definition (tests/litmus/reference.h).
// CLEW_LITMUS_RUNS says how many random programs, CLEW_LITMUS_SEED which.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "common/digest.h"
#include "tests/litmus/litmus_program.h"
#include "tests/litmus/litmus_programs.h"
#include "tests/litmus/on_machine.h"
#include "tests/litmus/reference.h"

namespace clew::test {
namespace {

using Kind = LitmusOp::Kind;

constexpr MemoryModelKind kModels[] = {
    MemoryModelKind::kSc, MemoryModelKind::kTso, MemoryModelKind::kPso};

std::string Difference(const std::set<LitmusOutcome>& expected,
                       const std::set<LitmusOutcome>& found) {
  const auto missing = std::ranges::count_if(
      expected, [&](const auto& outcome) { return !found.contains(outcome); });
  const auto added = std::ranges::count_if(
      found, [&](const auto& outcome) { return !expected.contains(outcome); });
  return missing == 0 && added == 0
             ? ""
             : fmt::format("{} outcomes missed, {} that cannot be", missing,
                           added);
}

TEST(LitmusTest, NamedProgramsHaveTheOutcomesOfEachModelAndNoOther) {
  for (const LitmusCase& named : LitmusCases()) {
    const LitmusProgram program = ParseLitmus(named.program);
    const size_t expected[] = {named.sc, named.tso, named.pso};
    for (size_t i = 0; i < 3; ++i) {
      const auto by_definition = AllOutcomes(program, kModels[i]);
      EXPECT_EQ(by_definition.size(), expected[i])
          << named.name << ": " << named.program << ", model " << i;
      EXPECT_EQ(
          Difference(by_definition, OutcomesOnMachine(program, kModels[i])), "")
          << named.name << ": " << named.program << ", model " << i;
    }
  }
}

LitmusOp RandomOp(Random& random, size_t results, bool odd_sizes) {
  LitmusOp op;
  constexpr Kind kKinds[] = {
      Kind::kLoad,  Kind::kLoad,       Kind::kLoad,       Kind::kLoad,
      Kind::kStore, Kind::kStore,      Kind::kStore,      Kind::kStore,
      Kind::kCopy,  Kind::kIncrement,  Kind::kAdd,        Kind::kExchange,
      Kind::kFence, Kind::kSwapIfZero, Kind::kStoreFence, Kind::kLoadFence};
  op.kind = kKinds[random.Below(std::size(kKinds))];
  op.at = static_cast<uint32_t>(8 * random.Below(3));
  op.value = static_cast<uint32_t>(1 + random.Below(2));
  if (op.kind == Kind::kCopy) {
    op.kind = results == 0 ? Kind::kStore : op.kind;
    op.value =
        results == 0 ? op.value : static_cast<uint32_t>(random.Below(results));
  }
  if (op.kind == Kind::kIncrement || op.kind == Kind::kAdd ||
      op.kind == Kind::kSwapIfZero) {
    op.locked = random.Below(3) == 0;
  } else if (odd_sizes && (op.kind == Kind::kLoad || op.kind == Kind::kStore ||
                           op.kind == Kind::kCopy)) {
    op.size_bytes = 1u << random.Below(4);
    op.at += static_cast<uint32_t>(random.Below(8));
    op.value += op.kind == Kind::kStore
                    ? static_cast<uint32_t>(256 * random.Below(2))
                    : 0;
    op.value &= op.size_bytes == 1 ? 0xff : ~0u;
  }
  return op;
}

LitmusProgram RandomProgram(Random& random) {
  LitmusProgram program(2 + random.Below(8) / 6);
  const bool odd_sizes = random.Below(4) == 0;
  for (LitmusThread& thread : program) {
    size_t results = 0;
    const size_t length = 1 + random.Below(program.size() == 2 ? 4 : 3);
    for (size_t i = 0; i < length; ++i) {
      thread.push_back(RandomOp(random, results, odd_sizes));
      results += HasResult(thread.back().kind) ? 1 : 0;
    }
  }
  return program;
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(LitmusTest, RandomProgramsHaveTheOutcomesOfEachModelAndNoOther) {
  const uint64_t seed = FromEnvironment("CLEW_LITMUS_SEED", 1);
  const uint64_t runs = FromEnvironment("CLEW_LITMUS_RUNS", 300);
  uint64_t beyond_sc = 0;
  uint64_t beyond_tso = 0;
  fmt::print("seeds {} to {}\n", seed, seed + runs - 1);
  for (uint64_t run = seed; run < seed + runs; ++run) {
    Random random(run);
    const LitmusProgram program = RandomProgram(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", run, LitmusText(program)));
    ASSERT_EQ(LitmusText(ParseLitmus(LitmusText(program))),
              LitmusText(program));
    size_t outcomes[3];
    for (size_t i = 0; i < 3; ++i) {
      const auto by_definition = AllOutcomes(program, kModels[i]);
      outcomes[i] = by_definition.size();
      ASSERT_EQ(
          Difference(by_definition, OutcomesOnMachine(program, kModels[i])), "")
          << "model " << i;
    }
    beyond_sc += outcomes[1] > outcomes[0] ? 1 : 0;
    beyond_tso += outcomes[2] > outcomes[1] ? 1 : 0;
  }
  fmt::print(
      "{} programs, {} with more outcomes under tso than under sc, {} "
      "with more under pso than under tso\n",
      runs, beyond_sc, beyond_tso);
  EXPECT_TRUE(runs < 300 || (beyond_sc > 0 && beyond_tso > 0));
}

}  // namespace
}  // namespace clew::test
