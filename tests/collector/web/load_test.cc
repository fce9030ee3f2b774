// Goal: with 10,000 bundles in 2,000 groups and reports of 1,000 hosts no page
// costs SQLite more than 40 steps a bundle and 100 a host, and none is large.
// Method: the real catalogue in a file, the site without its sockets. What
// counts is the same on every machine; the times of five loads are printed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "collector/web/site.h"
#include "common/sanitizer.h"
#include "tests/collector/catalogue/sql_steps.h"
#include "tests/collector/web/served_site.h"

namespace clew::collector::web {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = kAddressSanitizer;
#endif
// A sanitizer checks the way, not the time.
constexpr uint64_t kBundles = kSanitized ? 1'000 : 10'000;
constexpr uint64_t kGroups = kSanitized ? 200 : 2'000;

void Fill(Catalogue& catalogue) {
  for (uint64_t i = 0; i < kBundles; ++i) {
    BundleRow row = SampleBundle(i);
    row.recorded_at_s = kNow_s - static_cast<int64_t>(i) * 60;
    row.host = fmt::format("host-{:03}.example", i % 200);
    ASSERT_TRUE(catalogue.Add(row).has_value());
    ASSERT_TRUE(
        catalogue
            .SetAnalysis(row.id,
                         {.signature = SampleSignature(i % kGroups),
                          .title = fmt::format("SIGSEGV in F{}", i % kGroups),
                          .backtraces = SampleBacktraces()})
            .has_value());
  }
}

constexpr uint64_t kHosts = 1'000;
constexpr uint64_t kStepsMax = 40 * kBundles + 100 * kHosts;
constexpr size_t kPageBytesMax = 400'000;

TEST(LoadTest, TenThousandBundlesInTwoThousandGroups) {
  const SqlSteps counted;
  StoreAndCatalogue data;
  auto catalogue = Catalogue::Open(data.folder / "catalogue.sqlite");
  ASSERT_TRUE(catalogue.has_value()) << catalogue.error().message;
  Fill(**catalogue);
  data.AddReports(kHosts);
  Site site({.host_names = {},
             .client_options = {},
             .store_limit_bytes = 0,
             .now_s = [] { return kNow_s; },
             .more = {},
             .hosts = data.hosts.get()},
            *data.store, **catalogue);
  for (const std::string& target :
       {std::string("/"), fmt::format("/?page={}", kGroups / kRowsPerPage),
        fmt::format("/?q=F{}", kGroups - 1), std::string("/?q=nowhere"),
        std::string("/?q=host-007"), "/groups/" + SampleSignature(7),
        std::string("/bundles"),
        fmt::format("/bundles?page={}", kBundles / kRowsPerPage),
        std::string("/bundles?host=host-003.example&state=stored"),
        "/bundles/" + SampleId(77).hex(), std::string("/hosts"),
        std::string("/hosts?q=web-07&page=2"), std::string("/metrics"),
        std::string("/healthz"), std::string("/api/groups.json")}) {
    std::vector<double> times_s;
    uint64_t steps = 0;
    size_t bytes = 0;
    for (int i = 0; i < 5; ++i) {
      (void)SqlSteps::Take();
      const auto start = std::chrono::steady_clock::now();
      const Response response = site.Answer(
          ParseHead("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
      const std::chrono::duration<double> taken =
          std::chrono::steady_clock::now() - start;
      ASSERT_EQ(response.status, 200) << target << response.body;
      times_s.push_back(taken.count());
      steps = std::max(steps, SqlSteps::Take());
      bytes = std::max(bytes, response.body.size());
    }
    std::ranges::sort(times_s);
    fmt::print(
        "{:<42.42} {:7} steps, {:7} bytes, median {:6.1f} ms, slowest {:6.1f} "
        "ms\n",
        target, steps, bytes, times_s[2] * 1000, times_s[4] * 1000);
    EXPECT_LE(steps, kStepsMax) << target;
    EXPECT_LE(bytes, kPageBytesMax) << target;
  }
}

}  // namespace
}  // namespace clew::collector::web
