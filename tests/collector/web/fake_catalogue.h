#ifndef CLEW_TESTS_COLLECTOR_WEB_FAKE_CATALOGUE_H_
#define CLEW_TESTS_COLLECTOR_WEB_FAKE_CATALOGUE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/catalogue/catalogue.h"

namespace clew::collector::web {

// A catalogue that has what a test put in, and can be made to fail. The calls
// that a web page does not need answer that there is nothing.
class FakeCatalogue final : public Catalogue {
 public:
  std::vector<GroupRow> groups;    // latest first
  std::vector<BundleRow> bundles;  // latest first
  std::map<BundleId, Analysis> analyses;
  std::atomic<bool> fails = false;
  Status health;
  std::function<void()> on_query;  // called first by each query; may block

  Status CheckPages(const std::function<bool()>&) override { return {}; }
  Status Health() const override { return health; }
  Status Add(const NewBundle&) override { return {}; }
  Status Remove(const BundleId&) override { return {}; }
  Result<std::optional<BundleId>> TakeForAnalysis() override {
    return std::nullopt;
  }
  Status SetAnalysis(const BundleId&, const Analysis&) override { return {}; }
  Result<std::optional<BundleId>> TakeForSolving() override {
    return std::nullopt;
  }
  Status SetSolved(const BundleId&, const SolveOutcome&) override { return {}; }
  Status PutOff(const BundleId&, int64_t) override { return {}; }
  Status ReturnTaken() override { return {}; }

  Result<ListPage<GroupRow>> Groups(const GroupQuery& query) const override;
  Result<ListPage<BundleRow>> Bundles(const BundleQuery& query) const override;
  Result<std::optional<GroupRow>> Group(
      const std::string& signature) const override;
  Result<std::optional<BundleRow>> Bundle(const BundleId& id) const override;
  Result<std::optional<Analysis>> AnalysisOf(const BundleId& id) const override;
  Result<CatalogueCounts> Counts() const override;

  Status Change(const std::string&, const GroupChange&) override { return {}; }
  Result<std::vector<std::string>> SignaturesWith(const std::string&,
                                                  uint64_t) const override {
    return std::vector<std::string>{};
  }
  Result<std::string> PresentSignature(
      const std::string& signature) const override {
    return signature;
  }
  Result<std::vector<VersionCount>> VersionsOf(const std::string&,
                                               uint64_t) const override;
  Result<std::vector<DayCount>> DaysOf(const std::string&,
                                       int64_t) const override;
  Result<std::string> RacesOf(const BundleId& id) const override;

  std::map<BundleId, std::string> races;
  std::vector<VersionCount> versions;  // of every group, as the next
  std::vector<DayCount> days;

 private:
  Status Check() const;
};

inline constexpr int64_t kNow_s = 1'795'176'000;  // 2026-11-20 12:00:00

// 64 digits, different for each number.
std::string SampleSignature(uint64_t number);
BundleId SampleId(uint64_t number);

// A bundle of a race in a bank, solved; its group; its backtraces.
BundleRow SampleBundle(uint64_t number);
GroupRow SampleGroup(uint64_t number);
std::string SampleBacktraces();
// A lost update, as `clew solve --json` tells it; `name` is the variable.
std::string SampleRaces(const std::string& name);
// The same of a deadlock: a lock of that name, and one who joins its holder.
std::string SampleDeadlock(const std::string& name);

// One group with one solved bundle.
void FillWithOne(FakeCatalogue& catalogue);
// Groups in all states, with long names and ones that try to break out of the
// page; each has one bundle.
void FillWithHostileNames(FakeCatalogue& catalogue);
// 120 groups as a fleet would have them.
void FillWithFleet(FakeCatalogue& catalogue);

// Texts that try to be more than text.
std::vector<std::string> HostileTexts();

}  // namespace clew::collector::web

#endif  // CLEW_TESTS_COLLECTOR_WEB_FAKE_CATALOGUE_H_
