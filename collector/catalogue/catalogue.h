#ifndef CLEW_COLLECTOR_CATALOGUE_CATALOGUE_H_
#define CLEW_COLLECTOR_CATALOGUE_CATALOGUE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/store/chunk_store.h"
#include "common/bundle_facts.h"
#include "common/result.h"

namespace clew::collector {

// How far a bundle, or that of a group which has come furthest, has come.
// Furthest is kWitness, then kContradiction, kSolving, kUnsolved and
// kModelDiffers alike, kAnalysing. The catalogue keeps the numbers.
enum class BundleState : uint8_t {
  kStored,         // every byte is here
  kAnalysing,      // backtraces and signature are being made
  kSolving,        // `clew solve` is at work
  kWitness,        // an interleaving was found and replayed
  kContradiction,  // no order agrees, of a recording that lost something
  kUnsolved,       // no answer; BundleRow::why says why
  kModelDiffers,   // clew's model differs; BundleRow::why says where
};
inline constexpr size_t kBundleStates = 7;
// "stored", "analysing", ...
std::string_view ToString(BundleState state);
std::optional<BundleState> StateNamed(std::string_view name);

// Longer text is cut and ends in an ellipsis; control characters, and bytes
// that are not UTF-8, become U+FFFD.
inline constexpr size_t kNameBytesMax = 255;   // host, unit, source, grade
inline constexpr size_t kLineBytesMax = 1024;  // command, failure, title, why
// Returns a name of kNameBytesMax as it is kept.
std::string CleanName(std::string_view text_untrusted);
// Backtraces beyond it are refused.
inline constexpr size_t kBacktracesBytesMax = size_t{4} << 20;
// Rows of one page; more are not given, whatever a query says.
inline constexpr uint64_t kPageRowsMax = 1000;
// The collector died so often while it worked on a bundle: given up.
inline constexpr int64_t kAttemptsMax = 3;
inline constexpr int64_t kPutOffMax_s = 3600;

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
  std::string signature;        // 64 hexadecimal digits; equal: one group
  std::string title;            // "SIGABRT in Deposit", for people
  std::string backtraces;       // the JSON document, as printed; empty: none
  int rules = kSignatureRules;  // what the signature goes by
  std::string program{};        // base name; empty: not known
  std::string version{};  // of the program, its build-id; empty: not known
};

// Returns the program's name in a command line: the last component of its first
// word.
std::string ProgramOf(std::string_view command);

// Returns signature and title by the kind of failure and the program alone, for
// a bundle that no backtrace could be made of.
Analysis AnalysisByKind(std::string_view failure, std::string_view command);

// What `clew solve` said of a bundle. kStored: the work was broken off, and the
// bundle is as before it was taken; of one taken for analysis, too.
struct SolveOutcome {
  BundleState state = BundleState::kUnsolved;
  std::string grade{};  // "memory-exact", of a witness
  std::string why{};    // one line, where there is no witness
  double seconds = 0;
  // Of a witness: a JSON object with "races" and "waits" as `clew solve` prints
  // them; empty: none. Some have the array of races alone.
  std::string races{};
};
// Longer ones are left out.
inline constexpr size_t kRacesBytesMax = size_t{64} << 10;

struct BundleRow : NewBundle {
  BundleState state = BundleState::kStored;
  std::string signature{};  // empty: not analysed yet
  std::string grade{};
  std::string why{};
  double solve_seconds = 0;
  std::string program{};  // empty: not known, as the version
  std::string version{};
};

// The mark that engineers gave a group, and what became of it.
struct GroupMark {
  bool resolved = false;
  // As it was given, which may be a version not seen yet; empty: whatever comes
  // next.
  std::string resolved_in{};
  std::string reopened_in{};  // the version that was seen again; empty: none
  std::string note{};
  std::string by{};  // who changed it last
  int64_t at_s = 0;  // when; 0: never changed
};

// What an engineer changes; what is absent stays.
struct GroupChange {
  std::optional<bool> resolved{};
  std::string version{};  // in which it is resolved
  std::optional<std::string> note{};
  std::string by{};
  int64_t at_s = 0;
};
inline constexpr size_t kNoteBytesMax = 2000;

struct GroupRow {
  std::string signature;
  std::string title;
  uint64_t bundles = 0;
  std::vector<std::string> hosts;  // ascending, at most kGroupHostsMax
  uint64_t host_count = 0;
  // By recorded_at_s, or received_at_s where the former is 0 or later by more
  // than kClockSlack_s; of bundles that were removed since, too.
  int64_t first_seen_s = 0;
  int64_t last_seen_s = 0;
  // Of the bundle that has come furthest; of several, of that with the highest
  // sufficiency, then the latest.
  BundleState state = BundleState::kStored;
  std::string why;
  std::optional<BundleId> representative;  // that bundle
  std::string program{};                   // empty: not known, as versions
  // In the order in which the collector saw versions of the program first,
  // whichever their groups were.
  std::string first_version{};
  std::string last_version{};
  uint64_t versions = 0;
  GroupMark mark{};
};

// Bundles of a group in one version of the program.
struct VersionCount {
  std::string version;
  int64_t first_seen_s = 0;
  int64_t last_seen_s = 0;
};
// Bundles of a group on one day (UTC).
struct DayCount {
  int64_t day = 0;  // since 1970
  uint64_t bundles = 0;
};
inline constexpr size_t kGroupHostsMax = 8;
inline constexpr int64_t kClockSlack_s = 24 * 60 * 60;

// What a page of a list has. `total` is of all that match.
template <class Row>
struct ListPage {
  std::vector<Row> rows;
  uint64_t total = 0;
};

// Bundles that have all of this; what is empty says nothing.
struct BundleFilter {
  std::string host{};
  std::string program{};
  std::string version{};  // or the first digits of a build-id
  std::string unit{};     // with or without ".service"
  std::string failure{};  // "signal 6 (SIGABRT)", "signal 6" or "SIGABRT"
  int64_t since_s = 0;    // received then or later
  int64_t until_s = 0;    // received before that; 0: no end
  bool empty() const;
};

struct GroupQuery {
  uint64_t offset = 0;
  uint64_t limit = 50;
  // In title, host or unit, whatever the case of ASCII letters; empty: all.
  std::string text{};
  std::optional<bool> resolved{};  // absent: both
  bool reopened = false;           // those alone that were seen again
  std::optional<BundleState> state{};
  // Groups of which one bundle, still here, has all of this.
  BundleFilter filter{};
};
struct BundleQuery {
  uint64_t offset = 0;
  uint64_t limit = 50;
  std::string signature{};  // empty: all
  std::optional<BundleState> state{};
  BundleFilter filter{};
};

struct CatalogueCounts {
  uint64_t bundles = 0;
  uint64_t groups = 0;
  uint64_t hosts = 0;
  uint64_t bytes = 0;  // of all bundles, shared chunks counted in each
  std::vector<uint64_t> by_state;           // index: BundleState
  std::vector<uint64_t> groups_by_state{};  // the same
};

// The bundles of a collector with what was found out about them, in SQLite
// (WAL). All but the marks of groups (Change) and the order of versions can be
// made again from the bundle store, so it is written through to stable storage
// only now and then: what a call did survives the death of the collector, and
// is whole or absent after a power cut. Times are seconds since 1970. A file of
// an earlier version is brought to the present one when it is opened.
// Thread-safe; readers do not wait for a writer.
//
// Every call fails with kSystem if the file cannot be used, and with
// kCorruptInput if it is damaged.
class Catalogue {
 public:
  enum class Check : uint8_t {
    kPages,   // the whole file is read
    kSchema,  // CheckPages is to be called; the file may be large
  };
  // Opens the file, or makes it. Fails with kCorruptInput if it is damaged, not
  // a database of this program, or of a later version; the message says that it
  // may be removed and is made again. REQUIRES: nobody else has it open.
  [[nodiscard]] static Result<std::unique_ptr<Catalogue>> Open(
      const std::string& path, Check check = Check::kPages);
  virtual ~Catalogue() = default;

  // Reads the whole file and does not wait for other calls. Fails with
  // kCorruptInput as Open does; Health says so from then on. Leaves out the
  // rest if `go_on`, which is asked between tables, returns false.
  [[nodiscard]] virtual Status CheckPages(
      const std::function<bool()>& go_on) = 0;
  // Fails as CheckPages did when it found damage.
  [[nodiscard]] virtual Status Health() const = 0;

  // Adds a bundle. Does nothing if it is there already.
  [[nodiscard]] virtual Status Add(const NewBundle& bundle) = 0;
  // Removes a bundle. Succeeds if it is not there.
  [[nodiscard]] virtual Status Remove(const BundleId& id) = 0;

  // Takes, of the bundles to analyse, the one received first and marks it
  // kAnalysing. If none waits, returns the representative of a group whose
  // signature is of earlier rules, and leaves its state as it is: SetAnalysis
  // then gives the whole group its present signature, so that no group is torn
  // apart. Returns nullopt if there is neither.
  [[nodiscard]] virtual Result<std::optional<BundleId>> TakeForAnalysis() = 0;
  // Puts the bundle into the group of its signature, as kStored again. Succeeds
  // if it was removed meanwhile. Fails with kInvalidArgument if the signature
  // is not one, and with kLimit if the backtraces exceed kBacktracesBytesMax.
  [[nodiscard]] virtual Status SetAnalysis(const BundleId& id,
                                           const Analysis& analysis) = 0;
  // Takes the next bundle to solve and marks it kSolving. Chooses the group
  // that was seen last among those with no attempt yet, or with only kUnsolved
  // ones of a lower sufficiency; within the group, the bundle with the highest
  // sufficiency, the latest first. Passes over bundles that were put off.
  // Returns nullopt if there is none.
  [[nodiscard]] virtual Result<std::optional<BundleId>> TakeForSolving() = 0;
  // Keeps the outcome. Succeeds if the bundle was removed meanwhile.
  [[nodiscard]] virtual Status SetSolved(const BundleId& id,
                                         const SolveOutcome& outcome) = 0;
  // Does as SetSolved with kStored; the bundle is not taken again for
  // `seconds`, at most kPutOffMax_s.
  [[nodiscard]] virtual Status PutOff(const BundleId& id, int64_t seconds) = 0;
  // Returns what was taken before a crash: kAnalysing and kSolving become
  // kStored again; after kAttemptsMax times kUnsolved, with the signature of
  // AnalysisByKind if the bundle has none.
  [[nodiscard]] virtual Status ReturnTaken() = 0;

  // Returns a page of groups, the one that was seen last first.
  [[nodiscard]] virtual Result<ListPage<GroupRow>> Groups(
      const GroupQuery& query) const = 0;
  // Returns a page of bundles, the one received last first, then by id.
  [[nodiscard]] virtual Result<ListPage<BundleRow>> Bundles(
      const BundleQuery& query) const = 0;
  // These return nullopt if there is no such group or bundle.
  [[nodiscard]] virtual Result<std::optional<GroupRow>> Group(
      const std::string& signature) const = 0;
  [[nodiscard]] virtual Result<std::optional<BundleRow>> Bundle(
      const BundleId& id) const = 0;
  [[nodiscard]] virtual Result<std::optional<Analysis>> AnalysisOf(
      const BundleId& id) const = 0;
  [[nodiscard]] virtual Result<CatalogueCounts> Counts() const = 0;

  // Applies `change` to a group, on stable storage when it returns; what is so
  // already stays as it is. A resolved group is opened again by a bundle that
  // is received later and is of the version in which it was resolved, or of one
  // that the collector saw first after that; if it was resolved in no version
  // that was seen, of one that was not seen then. The mark outlives the last
  // bundle of the group, but not the file. Fails with kInvalidArgument if there
  // is no such group.
  [[nodiscard]] virtual Status Change(const std::string& signature,
                                      const GroupChange& change) = 0;
  // Returns the signatures of groups that begin with `prefix`, ascending, at
  // most `most`.
  [[nodiscard]] virtual Result<std::vector<std::string>> SignaturesWith(
      const std::string& prefix, uint64_t most) const = 0;
  // Returns the signature of the group that has taken in one of earlier rules;
  // `signature` if none has.
  [[nodiscard]] virtual Result<std::string> PresentSignature(
      const std::string& signature) const = 0;
  // Returns the versions of a group's bundles, the latest first, at most
  // `most`.
  [[nodiscard]] virtual Result<std::vector<VersionCount>> VersionsOf(
      const std::string& signature, uint64_t most) const = 0;
  // Counts bundles by day, ascending; days without any are left out. Which time
  // counts is said at GroupRow::first_seen_s.
  [[nodiscard]] virtual Result<std::vector<DayCount>> DaysOf(
      const std::string& signature, int64_t first_day) const = 0;
  // Returns SolveOutcome::races; empty if there are none.
  [[nodiscard]] virtual Result<std::string> RacesOf(
      const BundleId& id) const = 0;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CATALOGUE_CATALOGUE_H_
