// Goal: no query of a page takes SQLite more than 20 steps a bundle, with
// 10,000 bundles in 2,000 groups or CLEW_CATALOGUE_BUNDLES in a fifth as many.
// Method: the steps of five runs of each, which are the same on every machine;
// they are printed, and the best time of the processor.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "collector/catalogue/catalogue.h"
#include "common/check.h"
#include "common/digest.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/catalogue/sql_steps.h"
#include "tests/collector/samples.h"

namespace clew::collector {
namespace {

constexpr uint64_t kStepsPerBundleMax = 20;
// A page of rows is as much as so many bundles.
constexpr uint64_t kBundlesMin = 1'000;

// Of this thread, which does all the work.
double CpuMilliseconds() {
  timespec now = {};
  CLEW_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0, "no clock");
  return static_cast<double>(now.tv_sec) * 1e3 +
         static_cast<double>(now.tv_nsec) * 1e-6;
}

// Every tenth group is solved; one group has a tenth of all bundles.
void FillWithGroups(Catalogue& catalogue, uint64_t bundles) {
  Random random(1);
  for (uint64_t i = 0; i < bundles; ++i) {
    NewBundle bundle = BundleOf(i);
    bundle.host = fmt::format("host-{}.example.org", random.Below(300));
    bundle.unit = fmt::format("service-{}.service", random.Below(40));
    const uint64_t group = i < bundles / 10 ? 0 : i % (bundles / 5);
    const Analysis analysis = {
        .signature = SignatureOf(group),
        .title = fmt::format("SIGSEGV in Function{}", group),
        .backtraces = std::string(2000, 'b')};
    CLEW_CHECK(catalogue.Add(bundle).has_value(), "not added");
    CLEW_CHECK(catalogue.SetAnalysis(bundle.id, analysis).has_value(),
               "not analysed");
  }
  for (uint64_t i = 0; i < bundles / 50; ++i) {
    const auto taken = catalogue.TakeForSolving();
    const auto id = taken ? *taken : std::nullopt;
    CLEW_CHECK(id, "nothing to solve");
    const SolveOutcome outcome = {.state = BundleState::kWitness};
    CLEW_CHECK(catalogue.SetSolved(*id, outcome).has_value(), "no state");
  }
}

uint64_t BundleCount() {
  const char* wanted = std::getenv("CLEW_CATALOGUE_BUNDLES");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 10'000;
}

// Runs `query`, which says whether it got what it should.
void Measure(const char* name, const std::function<bool()>& query) {
  const uint64_t steps_max =
      kStepsPerBundleMax * std::max(BundleCount(), kBundlesMin);
  double best_ms = 1e9;
  uint64_t most_steps = 0;
  for (int i = 0; i < 5; ++i) {
    (void)SqlSteps::Take();
    const double begin_ms = CpuMilliseconds();
    ASSERT_TRUE(query()) << name;
    best_ms = std::min(best_ms, CpuMilliseconds() - begin_ms);
    most_steps = std::max(most_steps, SqlSteps::Take());
  }
  std::printf("  %-44s %7d steps %7.2f ms\n", name,
              static_cast<int>(most_steps), best_ms);
  EXPECT_GT(most_steps, 0u) << name << ": nothing was counted";
  EXPECT_LE(most_steps, steps_max) << name;
}

TEST(CatalogueScaleTest, NoQueryOfAPageTakesMoreThan20StepsABundle) {
  const uint64_t n = BundleCount();
  const SqlSteps counted;
  const TempFolder folder;
  const auto opened = Catalogue::Open(folder / "catalogue.sqlite");
  ASSERT_TRUE(opened) << opened.error().message;
  Catalogue& catalogue = **opened;
  const double begin_ms = CpuMilliseconds();
  FillWithGroups(catalogue, n);
  std::printf("%d bundles, added and analysed in %.0f ms\n",
              static_cast<int>(n), CpuMilliseconds() - begin_ms);

  const std::string large = SignatureOf(0);
  Measure("first page of groups", [&] {
    const auto page = catalogue.Groups({});
    return page && page->rows.size() == 50 && page->total == n / 5;
  });
  Measure("last page of groups", [&] {
    const auto page = catalogue.Groups({.offset = n / 5 - 50});
    return page && page->rows.size() == 50;
  });
  Measure("groups by text that one title has", [&] {
    const auto page = catalogue.Groups({.text = "Function77"});
    return page && !page->rows.empty();
  });
  Measure("groups by text that nothing has", [&] {
    const auto page = catalogue.Groups({.text = "nowhere"});
    return page && page->total == 0;
  });
  Measure("first page of bundles", [&] {
    const auto page = catalogue.Bundles({});
    return page && page->total == n;
  });
  Measure("last page of bundles", [&] {
    const auto page = catalogue.Bundles({.offset = n - 50});
    return page && page->rows.size() == 50;
  });
  Measure("last page of the largest group", [&] {
    const auto page =
        catalogue.Bundles({.offset = n / 10 - 50, .signature = large});
    return page && page->rows.size() == 50;
  });
  Measure("bundles of a host", [&] {
    const auto page =
        catalogue.Bundles({.filter = {.host = "host-7.example.org"}});
    return page && page->total > 0;
  });
  Measure("stored bundles of a group and a host", [&] {
    const auto page =
        catalogue.Bundles({.signature = large,
                           .state = BundleState::kStored,
                           .filter = {.host = "host-7.example.org"}});
    return page.has_value();
  });
  Measure("bundles with a witness", [&] {
    const auto page = catalogue.Bundles({.state = BundleState::kWitness});
    return page && page->total == n / 50;
  });
  Measure("one group", [&] {
    const auto group = catalogue.Group(large);
    return group && *group && (*group)->host_count > 8;
  });
  Measure("one bundle", [&] {
    const auto bundle = catalogue.Bundle(IdOf(n / 2));
    return bundle && *bundle;
  });
  Measure("its backtraces", [&] {
    const auto analysis = catalogue.AnalysisOf(IdOf(n / 2));
    return analysis && *analysis;
  });
  Measure("counts", [&] {
    const auto counts = catalogue.Counts();
    return counts && counts->bundles == n;
  });
  uint64_t next = n;
  Measure("add", [&] { return catalogue.Add(BundleOf(next++)).has_value(); });
  Measure("analysis, into the largest group", [&] {
    return catalogue
        .SetAnalysis(IdOf(--next),
                     {.signature = large, .title = "SIGSEGV", .backtraces = ""})
        .has_value();
  });
  Measure("taken for solving", [&] {
    const auto taken = catalogue.TakeForSolving();
    return taken && *taken;
  });
  Measure("removed from the largest group",
          [&] { return catalogue.Remove(IdOf(next++)).has_value(); });
}

}  // namespace
}  // namespace clew::collector
