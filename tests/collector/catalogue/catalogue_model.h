#ifndef CLEW_TESTS_COLLECTOR_CATALOGUE_CATALOGUE_MODEL_H_
#define CLEW_TESTS_COLLECTOR_CATALOGUE_CATALOGUE_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collector/catalogue/catalogue.h"

namespace clew::collector {

// A different name for each number.
BundleId IdOf(uint64_t number);
// A different signature for each number.
std::string SignatureOf(uint64_t number);
// A bundle with plain values.
NewBundle BundleOf(uint64_t number);

// What a catalogue should say, found out the slow way: a list of bundles that
// is looked through for every answer. Only of well-formed text.
class CatalogueModel {
 public:
  void Add(const NewBundle& bundle);
  void Remove(const BundleId& id);
  std::optional<BundleId> TakeForAnalysis();
  void SetAnalysis(const BundleId& id, const Analysis& analysis);
  std::optional<BundleId> TakeForSolving();
  void SetSolved(const BundleId& id, const SolveOutcome& outcome);
  void ReturnTaken();

  std::vector<GroupRow> Groups(const std::string& text) const;
  std::vector<BundleRow> Bundles(const BundleQuery& query) const;
  std::optional<Analysis> AnalysisOf(const BundleId& id) const;
  CatalogueCounts Counts() const;

 private:
  struct Entry {
    BundleRow row;
    Analysis analysis;
    int64_t attempts = 0;
  };
  struct Seen {
    std::string title;
    int64_t first_s = 0;
    int64_t last_s = 0;
  };
  using Entries = std::map<BundleId, Entry>;

  void Join(Entry& entry, const Analysis& analysis);
  void ForgetEmptyGroups();
  std::vector<const Entry*> Members(const std::string& signature) const;
  const Entry* ToSolve(const std::string& signature) const;
  GroupRow RowOf(const std::string& signature) const;

  Entries entries_;
  std::map<std::string, Seen> seen_;
};

// All fields of a row as text, to be compared and shown.
std::string Describe(const GroupRow& row);
std::string Describe(const BundleRow& row);
std::string Describe(const CatalogueCounts& counts);
std::string Describe(const std::optional<Analysis>& analysis);
std::string Describe(const std::optional<BundleId>& id);

}  // namespace clew::collector

#endif  // CLEW_TESTS_COLLECTOR_CATALOGUE_CATALOGUE_MODEL_H_
