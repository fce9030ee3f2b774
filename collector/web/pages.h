#ifndef CLEW_COLLECTOR_WEB_PAGES_H_
#define CLEW_COLLECTOR_WEB_PAGES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/catalogue/catalogue.h"
#include "collector/catalogue/host_table.h"
#include "collector/web/filters.h"
#include "collector/web/page_frame.h"

namespace clew::collector::web {

// The pages, as functions of what they show. Every text from outside is
// escaped by HtmlWriter.

// `fields` are those that the query's filter was made of.
std::string GroupsPage(const PageContext& context, const GroupQuery& query,
                       const FilterFields& fields,
                       const ListPage<GroupRow>& groups,
                       const CatalogueCounts& counts);
// What is known of a group beside its row.
struct GroupDetails {
  GroupRow row;
  std::optional<Analysis> analysis;  // of the representative, as the races
  std::string races;
  std::vector<VersionCount> versions;  // latest first; at most kVersionsShown
  std::vector<DayCount> days;
};
inline constexpr uint64_t kVersionsShown = 8;
std::string GroupPage(const PageContext& context, const GroupDetails& group,
                      const BundleQuery& query,
                      const ListPage<BundleRow>& bundles);
std::string BundlesPage(const PageContext& context, const BundleQuery& query,
                        const FilterFields& fields,
                        const ListPage<BundleRow>& bundles,
                        const CatalogueCounts& counts);

struct BundleDetails {
  BundleRow row;
  std::optional<Analysis> analysis;
  std::string races;
  std::optional<FileList> files;
  std::string files_missing_why;  // where `files` is nullopt
  bool damaged = false;           // the store has lost a part of it
};
std::string BundlePage(const PageContext& context,
                       const BundleDetails& details);

// What a host has sent.
struct HostUse {
  uint64_t bundles = 0;
  int64_t first_seen_s = 0;
  int64_t last_seen_s = 0;
  uint64_t bytes = 0;
  uint64_t witnesses = 0;
};
struct HostUses {
  void Add(const BundleRow& bundle);

  std::map<std::string, HostUse> hosts;
  uint64_t bundles_read = 0;  // the latest ones
  uint64_t bundles_total = 0;
};
// What hosts said of themselves.
struct HostReports {
  HostQuery query;
  ListPage<HostRow> page;
  HostCounts counts;
};
// `uses` are shown on the first page of all hosts.
std::string HostsPage(const PageContext& context, const HostReports& reports,
                      const HostUses& uses);

// `status` is one that ReasonOf knows; `advice` says what to do.
std::string ErrorPage(int status, std::string_view reason,
                      std::string_view advice);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_PAGES_H_
