#ifndef CLEW_COLLECTOR_UPKEEP_RETENTION_H_
#define CLEW_COLLECTOR_UPKEEP_RETENTION_H_

#include <cstddef>
#include <cstdint>

#include "collector/catalogue/catalogue.h"
#include "collector/store/bundle_store.h"
#include "collector/store/schedule_store.h"
#include "common/result.h"

namespace clew::collector {

struct RetentionOptions {
  uint64_t age_limit_s = 0;  // since a bundle was received; 0: none
  // Of what stored bundles need, shared chunks counted once; chunks of uploads
  // that were not finished do not count. Below the store's budget, so that
  // uploads find room. 0: none.
  uint64_t bytes_limit = 0;
  // Nothing goes for its age that is its group's last, or not grouped yet: the
  // clock may be wrong.
  bool keep_last_of_group = false;
  size_t removals_max = 1000;  // of one call
};

struct RetentionReport {
  size_t too_old = 0;    // bundles removed by age
  size_t too_much = 0;   // bundles removed for room
  size_t schedules = 0;  // of bundles that were gone
};

// Removes bundles that are too old, and then others until what is left is
// within the limit. In this order, each the oldest first:
//
// - bundles beside the representative of their group;
// - representatives, and bundles that were not analysed yet;
// - representatives with a witness.
//
// A representative is never too old while its group has other bundles. Bundles
// that are at work stay. A removed bundle leaves the catalogue, then the store,
// then its schedule; after a crash in between the collector's start adds it to
// the catalogue again, and it is removed by a later call.
//
// kSystem, kCorruptInput: what was removed until then stays removed. One call
// at a time.
[[nodiscard]] Result<RetentionReport> ApplyRetention(
    const RetentionOptions& options, BundleStore& store, Catalogue& catalogue,
    ScheduleStore& schedules, int64_t now_s);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_UPKEEP_RETENTION_H_
