#ifndef CLEW_COLLECTOR_CATALOGUE_SQLITE_CATALOGUE_H_
#define CLEW_COLLECTOR_CATALOGUE_SQLITE_CATALOGUE_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/catalogue/catalogue.h"
#include "collector/catalogue/sqlite.h"

namespace clew::collector {

// Gives `database` our schema where it has none, and checks it. The message of
// a failure is that of Catalogue::Open.
[[nodiscard]] Status PrepareCatalogue(Database& database,
                                      const std::string& path,
                                      Catalogue::Check check);
// Catalogue::CheckPages.
[[nodiscard]] Status CheckCataloguePages(Database& database,
                                         const std::string& path,
                                         const std::function<bool()>& go_on);

// Which of two states is further: the greater number.
int64_t ProgressOf(BundleState state);

// The group of `signature` as its bundles have it now; gone with the last one.
// REQUIRES: within a transaction.
[[nodiscard]] Status RefreshGroup(Database& database,
                                  const std::string& signature);

// Beyond kPutOffMax_s the clock was set back.
inline constexpr std::string_view kNotPutOff =
    "not_before_s NOT BETWEEN unixepoch() + 1 AND unixepoch() + 3600";
static_assert(kPutOffMax_s == 3600);

// Catalogue on SQLite: see catalogue_schema.cc for the tables.
class SqliteCatalogue final : public Catalogue {
 public:
  SqliteCatalogue(const std::string& path, Database writer)
      : path_(path), writer_(std::move(writer)), readers_(path) {}

  Status CheckPages(const std::function<bool()>& go_on) override;
  Status Health() const override;
  Status Add(const NewBundle& bundle) override;
  Status Remove(const BundleId& id) override;
  Result<std::optional<BundleId>> TakeForAnalysis() override;
  Status SetAnalysis(const BundleId& id, const Analysis& analysis) override;
  Result<std::optional<BundleId>> TakeForSolving() override;
  Status SetSolved(const BundleId& id, const SolveOutcome& outcome) override;
  Status PutOff(const BundleId& id, int64_t seconds) override;
  Status ReturnTaken() override;

  Result<ListPage<GroupRow>> Groups(const GroupQuery& query) const override;
  Result<ListPage<BundleRow>> Bundles(const BundleQuery& query) const override;
  Result<std::optional<GroupRow>> Group(
      const std::string& signature) const override;
  Result<std::optional<BundleRow>> Bundle(const BundleId& id) const override;
  Result<std::optional<Analysis>> AnalysisOf(const BundleId& id) const override;
  Result<CatalogueCounts> Counts() const override;

  Status Change(const std::string& signature,
                const GroupChange& change) override;
  Result<std::vector<std::string>> SignaturesWith(const std::string& prefix,
                                                  uint64_t most) const override;
  Result<std::string> PresentSignature(
      const std::string& signature) const override;
  Result<std::vector<VersionCount>> VersionsOf(const std::string& signature,
                                               uint64_t most) const override;
  Result<std::vector<DayCount>> DaysOf(const std::string& signature,
                                       int64_t first_day) const override;
  Result<std::string> RacesOf(const BundleId& id) const override;

 private:
  // All of these: REQUIRES: write_mutex_ is held, within a transaction.
  [[nodiscard]] Status Join(const BundleId& id, const Analysis& analysis);
  [[nodiscard]] Status Leave(const BundleId& id, const std::string& signature);
  [[nodiscard]] Result<bool> HasGroup(const std::string& signature);
  // collector/catalogue/group_versions.cc.
  [[nodiscard]] Status NoteVersion(const BundleId& id,
                                   const Analysis& analysis);
  [[nodiscard]] Status ReopenIfSeenAgain(const BundleId& id,
                                         const Analysis& analysis);
  [[nodiscard]] Result<bool> IsOfEarlierRules(const std::string& signature,
                                              int rules);
  [[nodiscard]] Status TakeIn(const std::string& former,
                              const Analysis& analysis);
  [[nodiscard]] Result<std::optional<BundleId>> TakeForRegrouping();
  [[nodiscard]] Result<int64_t> RankOf(const std::string& signature,
                                       const std::string& version);
  [[nodiscard]] Result<int64_t> BoundaryOf(const std::string& signature,
                                           const std::string& version);
  [[nodiscard]] Status Resolve(const std::string& signature,
                               const std::string& version);
  [[nodiscard]] Status Reopen(const std::string& signature);
  [[nodiscard]] Status ChangeMark(const std::string& signature,
                                  const GroupChange& change);
  // nullopt: no such bundle.
  [[nodiscard]] Result<std::optional<std::string>> SignatureOf(
      const BundleId& id);
  [[nodiscard]] Status SetState(const BundleId& id, BundleState state);
  [[nodiscard]] Result<std::optional<BundleId>> Take(std::string_view sql,
                                                     BundleState state);
  [[nodiscard]] Status GiveUp(const BundleId& id);
  [[nodiscard]] Status ReturnOne(const BundleId& id, bool give_up);

  const std::string path_;
  mutable std::mutex health_mutex_;
  Status health_;
  std::mutex write_mutex_;
  Database writer_;
  std::set<BundleId> regrouping_;  // taken, and not analysed yet
  mutable ReaderPool readers_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CATALOGUE_SQLITE_CATALOGUE_H_
