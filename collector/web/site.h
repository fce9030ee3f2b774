#ifndef CLEW_COLLECTOR_WEB_SITE_H_
#define CLEW_COLLECTOR_WEB_SITE_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "collector/catalogue/catalogue.h"
#include "collector/store/bundle_store.h"
#include "collector/web/http.h"
#include "collector/web/metrics.h"
#include "collector/web/pages.h"
#include "common/result.h"

namespace clew::collector::web {

// Longest text that is searched for, in bytes.
inline constexpr size_t kSearchBytesMax = 200;
// Pages of a list that can be asked for.
inline constexpr uint64_t kPageMax = 1'000'000;
// Bundles that /hosts is made of.
inline constexpr uint64_t kHostBundlesMax = 5000;

// From requests to answers:
//
//     /                    groups; ?q=TEXT, ?program=P, ?status=open or
//                          resolved, ?page=N
//     /groups/<signature>  one group with its bundles; ?page=N
//     /bundles             ?host=H, ?state=S, ?program=P, ?version=V, ?unit=U,
//                          ?failure=F, ?since=DATE, ?page=N
//     /bundles/<id>        one bundle
//     /hosts               what they said, ?q=TEXT, ?health=H, ?page=N; what
//                          they sent, by the latest kHostBundlesMax bundles
//     /metrics             Prometheus text format 0.0.4
//     /healthz             200 if store and catalogue answer, else 503;
//                          first line "ok" or "damaged", then figures
//     /api/groups.json     as /, /api/bundles/<id>.json as /bundles/<id>,
//                          /api/hosts.json as /hosts
//
// Thread-safe.
class Site {
 public:
  struct Options {
    std::vector<std::string> host_names;
    std::string client_options;
    uint64_t store_limit_bytes = 0;
    std::function<int64_t()> now_s;
    std::function<void(MetricsWriter&)> more;  // may be empty
    HostTable* hosts = nullptr;                // nullptr: hosts say nothing
  };
  // Both must outlive the site.
  Site(Options options, const BundleStore& store, const Catalogue& catalogue)
      : options_(std::move(options)), store_(store), catalogue_(catalogue) {}

  // Never fails: what goes wrong is an answer, too.
  Response Answer(const ParsedHead& head);

 private:
  Response Route(const Target& target);
  [[nodiscard]] Result<Response> ListPage(const Target& target);
  [[nodiscard]] Result<Response> Groups(const Target& target) const;
  [[nodiscard]] Result<Response> Group(const Target& target,
                                       std::string_view signature) const;
  [[nodiscard]] Result<Response> Bundles(const Target& target) const;
  [[nodiscard]] Result<Response> OneBundle(std::string_view id) const;
  [[nodiscard]] Result<Response> BundleJson(std::string_view id) const;
  [[nodiscard]] Result<Response> GroupsJson(const Target& target) const;
  [[nodiscard]] Result<Response> HostsJson(const Target& target) const;
  [[nodiscard]] Result<Response> Hosts(const Target& target) const;
  [[nodiscard]] Result<HostReports> ReportsOf(const HostQuery& query) const;
  [[nodiscard]] Result<HostUses> Uses() const;
  [[nodiscard]] Result<Response> Metrics();
  Response Health() const;
  std::string HealthText() const;
  [[nodiscard]] Status CheckHealth() const;
  [[nodiscard]] Result<BundleDetails> DetailsOf(std::string_view id) const;
  [[nodiscard]] Result<GroupDetails> DetailsOf(GroupRow group) const;
  PageContext Context() const;

  const Options options_;
  const BundleStore& store_;
  const Catalogue& catalogue_;
  RequestStats stats_;
  std::mutex more_mutex_;
};

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_SITE_H_
