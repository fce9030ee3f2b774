#include "collector/upkeep/retention.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace clew::collector {
namespace {

constexpr uint64_t kPageRows = 200;

// How much somebody would miss a bundle.
enum class Worth : uint8_t { kOneOfMany, kOnlyOne, kWitness };

// The bundles of a catalogue, that received first first, while they are
// removed. Those that come meanwhile are behind the end.
class OldestFirst {
 public:
  explicit OldestFirst(const Catalogue& catalogue) : catalogue_(catalogue) {}

  // nullopt: the end.
  Result<std::optional<BundleRow>> Next() {
    if (rows_.empty()) {
      CLEW_RETURN_IF_ERROR(Fill());
    }
    if (rows_.empty()) {
      return std::nullopt;
    }
    BundleRow row = std::move(rows_.back());
    rows_.pop_back();
    ++passed_;
    return std::optional(std::move(row));
  }
  // The last one is no longer there.
  void WasRemoved() { --passed_; }

 private:
  // Pages count from the latest, so the oldest that were not passed are those
  // before the last `passed_`.
  Status Fill() {
    CLEW_ASSIGN_OR_RETURN(first, catalogue_.Bundles({.limit = 1}));
    if (first.total <= passed_) {
      return {};
    }
    const uint64_t left = first.total - passed_;
    const uint64_t rows = std::min(left, kPageRows);
    CLEW_ASSIGN_OR_RETURN(
        page, catalogue_.Bundles({.offset = left - rows, .limit = rows}));
    rows_ = std::move(page.rows);
    return {};
  }

  const Catalogue& catalogue_;
  std::vector<BundleRow> rows_;  // the oldest last
  uint64_t passed_ = 0;          // and still there
};

class Retention {
 public:
  Retention(const RetentionOptions& options, BundleStore& store,
            Catalogue& catalogue, ScheduleStore& schedules)
      : options_(options),
        store_(store),
        catalogue_(catalogue),
        schedules_(schedules) {}

  Result<RetentionReport> Apply(int64_t now_s) {
    CLEW_RETURN_IF_ERROR(RemoveStraySchedules());
    if (options_.age_limit_s > 0) {
      CLEW_RETURN_IF_ERROR(RemoveOld(now_s));
      // Representatives whose groups have no others any more.
      CLEW_RETURN_IF_ERROR(RemoveOld(now_s));
    }
    for (const Worth worth :
         {Worth::kOneOfMany, Worth::kOnlyOne, Worth::kWitness}) {
      CLEW_RETURN_IF_ERROR(MakeRoom(worth));
    }
    return report_;
  }

 private:
  Status RemoveStraySchedules() {
    std::set<BundleId> stored;
    for (const StoredBundle& bundle : store_.List()) {
      stored.insert(bundle.id);
    }
    for (const BundleId& id : schedules_.List()) {
      if (!stored.contains(id)) {
        CLEW_RETURN_IF_ERROR(schedules_.Remove(id));
        ++report_.schedules;
      }
    }
    return {};
  }

  Status RemoveOld(int64_t now_s) {
    OldestFirst bundles(catalogue_);
    while (!IsEnough()) {
      CLEW_ASSIGN_OR_RETURN(row, bundles.Next());
      if (!row || !IsOld(*row, now_s)) {
        return {};
      }
      CLEW_ASSIGN_OR_RETURN(needed, IsNeededByGroup(*row));
      if (!needed && !IsAtWork(*row)) {
        CLEW_RETURN_IF_ERROR(Remove(*row));
        bundles.WasRemoved();
        ++report_.too_old;
      }
    }
    return {};
  }

  Status MakeRoom(Worth worth) {
    OldestFirst bundles(catalogue_);
    bool too_much = IsTooMuch();  // looks at every chunk
    while (too_much && !IsEnough()) {
      CLEW_ASSIGN_OR_RETURN(row, bundles.Next());
      if (!row) {
        return {};
      }
      CLEW_ASSIGN_OR_RETURN(found, WorthOf(*row));
      if (found == worth && !IsAtWork(*row)) {
        CLEW_RETURN_IF_ERROR(Remove(*row));
        bundles.WasRemoved();
        ++report_.too_much;
        too_much = IsTooMuch();
      }
    }
    return {};
  }

  // Crash-safe: see ApplyRetention.
  Status Remove(const BundleRow& row) {
    CLEW_RETURN_IF_ERROR(catalogue_.Remove(row.id));
    const Status removed = store_.Remove(row.id);
    // Of what is not there, nothing is left to remove.
    if (!removed && removed.error().code != ErrorCode::kInvalidArgument) {
      // Back, to be found by the next call; its state is found out again.
      (void)catalogue_.Add(row);
      return removed;
    }
    return schedules_.Remove(row.id);
  }

  bool IsEnough() const {
    return report_.too_old + report_.too_much >= options_.removals_max;
  }

  bool IsTooMuch() const {
    if (options_.bytes_limit == 0) {
      return false;
    }
    uint64_t unfinished_bytes = 0;
    for (const ChunkRef& chunk : store_.chunks().Unheld()) {
      unfinished_bytes += chunk.size_bytes;
    }
    const uint64_t used_bytes = store_.used_bytes() + schedules_.used_bytes();
    return used_bytes > options_.bytes_limit + unfinished_bytes;
  }

  bool IsOld(const BundleRow& row, int64_t now_s) const {
    return now_s > row.received_at_s &&
           static_cast<uint64_t>(now_s - row.received_at_s) >
               options_.age_limit_s;
  }

  static bool IsAtWork(const BundleRow& row) {
    return row.state == BundleState::kAnalysing ||
           row.state == BundleState::kSolving;
  }

  Result<bool> IsRepresentative(const BundleRow& row, uint64_t others_min) {
    if (row.signature.empty()) {
      return false;
    }
    CLEW_ASSIGN_OR_RETURN(group, catalogue_.Group(row.signature));
    return group && group->representative == row.id &&
           group->bundles > others_min;
  }
  Result<bool> IsNeededByGroup(const BundleRow& row) {
    if (options_.keep_last_of_group) {
      if (row.signature.empty()) {
        return true;
      }
      return IsRepresentative(row, /*others_min=*/0);
    }
    return IsRepresentative(row, /*others_min=*/1);
  }
  Result<Worth> WorthOf(const BundleRow& row) {
    CLEW_ASSIGN_OR_RETURN(represents, IsRepresentative(row, /*others_min=*/0));
    if (represents && row.state == BundleState::kWitness) {
      return Worth::kWitness;
    }
    return represents || row.signature.empty() ? Worth::kOnlyOne
                                               : Worth::kOneOfMany;
  }

  const RetentionOptions options_;
  BundleStore& store_;
  Catalogue& catalogue_;
  ScheduleStore& schedules_;
  RetentionReport report_;
};

}  // namespace

Result<RetentionReport> ApplyRetention(const RetentionOptions& options,
                                       BundleStore& store, Catalogue& catalogue,
                                       ScheduleStore& schedules,
                                       int64_t now_s) {
  return Retention(options, store, catalogue, schedules).Apply(now_s);
}

}  // namespace clew::collector
