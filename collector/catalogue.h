#ifndef CLEW_COLLECTOR_CATALOGUE_H_
#define CLEW_COLLECTOR_CATALOGUE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/chunk_store.h"
#include "common/result.h"

namespace clew::collector {

// How far a bundle, or the one bundle of a group that is worked on, has come.
enum class BundleState : uint8_t {
  kStored,         // every byte is here
  kAnalysing,      // backtraces and signature are being made
  kSolving,        // `clew solve` is at work
  kWitness,        // an interleaving was found and replayed
  kContradiction,  // the evidence contradicts itself
  kUnsolved,       // no answer; BundleRow::why says why
};
std::string_view ToString(BundleState state);

// What is known of a bundle when it is committed.
struct NewBundle {
  BundleId id;
  std::string host;  // of the client's certificate or token
  std::string unit;  // empty: none
  std::string command;
  std::string source;   // "qemu", "perf", "imported", ...
  std::string failure;  // "signal 6 (Aborted)", for people
  int64_t recorded_at_s = 0;
  int64_t received_at_s = 0;
  uint64_t size_bytes = 0;
  std::optional<uint32_t> sufficiency;  // 0..100
};

// What `clew backtrace` found in a bundle.
struct Analysis {
  std::string signature;   // 64 hexadecimal digits; equal: one group
  std::string title;       // "SIGABRT in Deposit", for people
  std::string backtraces;  // the JSON document, as printed
};

// What `clew solve` said of a bundle.
struct SolveOutcome {
  BundleState state = BundleState::kUnsolved;
  std::string grade;  // "memory-exact", of a witness
  std::string why;    // one line, where there is no witness
  double seconds = 0;
};

struct BundleRow : NewBundle {
  BundleState state = BundleState::kStored;
  std::string signature;  // empty: not analysed yet
  std::string grade;
  std::string why;
  double solve_seconds = 0;
};

struct GroupRow {
  std::string signature;
  std::string title;
  uint64_t bundles = 0;
  std::vector<std::string> hosts;  // ascending, at most kGroupHostsMax
  uint64_t host_count = 0;
  int64_t first_seen_s = 0;  // by recorded_at_s
  int64_t last_seen_s = 0;
  // Of the bundle of the group that has come furthest.
  BundleState state = BundleState::kStored;
  std::string why;
  std::optional<BundleId> representative;  // that bundle
};
inline constexpr size_t kGroupHostsMax = 8;

// What a page of a list has. `total` is of all that match.
template <class Row>
struct Page {
  std::vector<Row> rows;
  uint64_t total = 0;
};

struct GroupQuery {
  uint64_t offset = 0;
  uint64_t limit = 50;
  std::string text;  // in title, host or unit; empty: all
};
struct BundleQuery {
  uint64_t offset = 0;
  uint64_t limit = 50;
  std::string signature;  // empty: all
  std::string host;       // empty: all
  std::optional<BundleState> state;
};

struct CatalogueCounts {
  uint64_t bundles = 0;
  uint64_t groups = 0;
  uint64_t hosts = 0;
  uint64_t bytes = 0;  // of all bundles, shared chunks counted in each
  std::vector<uint64_t> by_state;  // index: BundleState
};

// The bundles of a collector with what was found out about them, in SQLite
// (WAL). Everything in it can be made again from the bundle store. Times are
// seconds since 1970. Thread-safe; readers do not wait for a writer.
class Catalogue {
 public:
  // kSystem; kCorruptInput: no database of ours, or of a later version; the
  // message says that it may be removed and is made again.
  [[nodiscard]] static Result<std::unique_ptr<Catalogue>> Open(
      const std::string& path);
  virtual ~Catalogue() = default;

  // Twice is once: the first one stays.
  [[nodiscard]] virtual Status Add(const NewBundle& bundle) = 0;
  // Absent is fine.
  [[nodiscard]] virtual Status Remove(const BundleId& id) = 0;

  // The oldest bundle to analyse, marked kAnalysing; nullopt: none.
  [[nodiscard]] virtual Result<std::optional<BundleId>> TakeForAnalysis() = 0;
  [[nodiscard]] virtual Status SetAnalysis(const BundleId& id,
                                           const Analysis& analysis) = 0;
  // One bundle of a group that has none that was tried, marked kSolving: that
  // with the highest sufficiency, then the latest; nullopt: none.
  [[nodiscard]] virtual Result<std::optional<BundleId>> TakeForSolving() = 0;
  [[nodiscard]] virtual Status SetSolved(const BundleId& id,
                                         const SolveOutcome& outcome) = 0;
  // Of a crash: kAnalysing and kSolving become kStored again.
  [[nodiscard]] virtual Status ReturnTaken() = 0;

  // Latest first.
  [[nodiscard]] virtual Result<Page<GroupRow>> Groups(
      const GroupQuery& query) const = 0;
  [[nodiscard]] virtual Result<Page<BundleRow>> Bundles(
      const BundleQuery& query) const = 0;
  // nullopt: no such.
  [[nodiscard]] virtual Result<std::optional<GroupRow>> Group(
      const std::string& signature) const = 0;
  [[nodiscard]] virtual Result<std::optional<BundleRow>> Bundle(
      const BundleId& id) const = 0;
  [[nodiscard]] virtual Result<std::optional<Analysis>> AnalysisOf(
      const BundleId& id) const = 0;
  [[nodiscard]] virtual Result<CatalogueCounts> Counts() const = 0;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CATALOGUE_H_
