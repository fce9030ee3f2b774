#include "collector/web/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "collector/web/api.h"
#include "collector/web/filters.h"
#include "collector/web/page_frame.h"
#include "collector/web/races.h"
#include "common/text/parse_number.h"
#include "common/units.h"

namespace clew::collector::web {
namespace {

constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr const char* kCss = "text/css; charset=utf-8";
constexpr const char* kPrometheus = "text/plain; version=0.0.4; charset=utf-8";

Response HtmlResponse(std::string body) {
  return {.content_type = kHtml, .body = std::move(body)};
}

Response ErrorResponse(int status, std::string_view reason,
                       std::string_view advice) {
  return {.status = status,
          .content_type = kHtml,
          .body = ErrorPage(status, reason, advice),
          .cache_control = "no-store"};
}

Response NotFound(std::string_view what) {
  return ErrorResponse(404, what, "It may have been removed.");
}

Response BadRequest(std::string_view what) {
  return ErrorResponse(400, what, "Follow a link or use the search.");
}

Response ResponseTo(const Error& error) {
  if (error.code == ErrorCode::kSystem || error.code == ErrorCode::kLimit) {
    return ErrorResponse(503, error.message,
                         "Try again; /healthz says what does not answer.");
  }
  return ErrorResponse(500, error.message, "The collector's log has more.");
}

std::string_view Field(const Target& target, const std::string& name) {
  const auto found = target.query.find(name);
  return found == target.query.end() ? std::string_view() : found->second;
}

// The offset of ?page=N; nullopt if N is not a number in 1..kPageMax.
std::optional<uint64_t> OffsetOf(const Target& target) {
  const auto found = target.query.find("page");
  if (found == target.query.end()) {
    return 0;
  }
  const auto page = ParseNumber<uint64_t>(found->second);
  if (!page || *page == 0 || *page > kPageMax) {
    return std::nullopt;
  }
  return (*page - 1) * kRowsPerPage;
}

constexpr const char* kBadPage =
    "page: wanted a number from 1 to 1000000";  // kPageMax
static_assert(kPageMax == 1'000'000);

// Signatures are digests, too.
bool IsSignature(std::string_view text) {
  return transfer::FromHex(text).has_value();
}

FilterFields FieldsIn(const Target& target) {
  return FieldsOf([&](const char* name) { return Field(target, name); });
}

// The filter that the fields of a target make, or what is wrong with them.
std::expected<BundleFilter, Response> FilterIn(const Target& target,
                                               int64_t now_s) {
  auto filter = FilterOf(FieldsIn(target), now_s);
  if (!filter) {
    return std::unexpected(BadRequest(filter.error()));
  }
  return *std::move(filter);
}

// ?state=...; empty where there is none.
std::expected<std::optional<BundleState>, Response> StateOf(
    const Target& target) {
  const std::string_view name = Field(target, "state");
  const auto state = StateNamed(name);
  if (!name.empty() && !state) {
    return std::unexpected(
        BadRequest("state: wanted stored, analysing, solving, witness, "
                   "contradiction, unsolved or model-differs"));
  }
  return state;
}

// What all lists have: ?page= and ?q=, or what is wrong with them.
std::expected<GroupQuery, Response> SearchOf(const Target& target) {
  const auto offset = OffsetOf(target);
  if (!offset) {
    return std::unexpected(BadRequest(kBadPage));
  }
  const std::string_view text = Field(target, "q");
  if (text.size() > kSearchBytesMax) {
    return std::unexpected(BadRequest(fmt::format(
        "q: {} bytes, wanted at most {}", text.size(), kSearchBytesMax)));
  }
  return GroupQuery{
      .offset = *offset, .limit = kRowsPerPage, .text = std::string(text)};
}

// GroupQuery of a target, or what is wrong with it.
std::expected<GroupQuery, Response> GroupQueryOf(const Target& target,
                                                 int64_t now_s) {
  auto query = SearchOf(target);
  const auto state = StateOf(target);
  auto filter = FilterIn(target, now_s);
  if (!query || !state || !filter) {
    return std::unexpected(!query   ? query.error()
                           : !state ? state.error()
                                    : filter.error());
  }
  const std::string_view status = Field(target, "status");
  if (!status.empty() && status != "open" && status != "resolved" &&
      status != "reopened") {
    return std::unexpected(
        BadRequest("status: wanted open, resolved or reopened"));
  }
  query->reopened = status == "reopened";
  if (status == "open" || status == "resolved") {
    query->resolved = status == "resolved";
  }
  query->state = *state;
  query->filter = *std::move(filter);
  return query;
}

// HostQuery of a target, or what is wrong with it.
std::expected<HostQuery, Response> HostQueryOf(const Target& target) {
  const auto shared = SearchOf(target);
  if (!shared) {
    return std::unexpected(shared.error());
  }
  const std::string_view name = Field(target, "health");
  const auto health = HealthNamed(name);
  if (!name.empty() && !health) {
    return std::unexpected(
        BadRequest("health: wanted fine, trouble or silent"));
  }
  return HostQuery{.offset = shared->offset,
                   .limit = shared->limit,
                   .text = shared->text,
                   .health = health};
}

}  // namespace

Response Site::Answer(const ParsedHead& head) {
  const auto start = std::chrono::steady_clock::now();
  Response response;
  if (!head.request) {
    response = ErrorResponse(head.refusal.status, head.refusal.reason,
                             "Nothing was done.");
  } else if (!IsExpectedHost(head.request->host, options_.host_names)) {
    response = ErrorResponse(
        421,
        fmt::format("This server is not known as {:?}.", head.request->host),
        "Use its address, or let its operator add the name to the names of "
        "the web page.");
  } else {
    response = Route(head.request->target);
  }
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  stats_.Count(response.status, taken.count());
  return response;
}

Response Site::Route(const Target& target) {
  if (target.path == StylePath()) {
    return {.content_type = kCss,
            .body = std::string(StyleSheet()),
            .cache_control = "public, max-age=31536000, immutable"};
  }
  if (target.path == "/healthz") {
    return Health();
  }
  Result<Response> response = ListPage(target);
  return response ? std::move(*response) : ResponseTo(response.error());
}

Result<Response> Site::ListPage(const Target& target) {
  const std::string_view path = target.path;
  constexpr std::string_view kGroups = "/groups/";
  constexpr std::string_view kBundles = "/bundles/";
  constexpr std::string_view kApiBundles = "/api/bundles/";
  if (path == "/") {
    return Groups(target);
  }
  if (path == "/bundles") {
    return Bundles(target);
  }
  if (path == "/hosts") {
    return Hosts(target);
  }
  if (path == "/metrics") {
    return Metrics();
  }
  if (path == "/api/groups.json") {
    return GroupsJson(target);
  }
  if (path == "/api/hosts.json") {
    return HostsJson(target);
  }
  if (path.starts_with(kGroups)) {
    return Group(target, path.substr(kGroups.size()));
  }
  if (path.starts_with(kBundles)) {
    return OneBundle(path.substr(kBundles.size()));
  }
  if (path.starts_with(kApiBundles) && path.ends_with(".json")) {
    return BundleJson(
        path.substr(kApiBundles.size(), path.size() - kApiBundles.size() - 5));
  }
  return ErrorResponse(404, "There is no such page.", "Check the address.");
}

Result<Response> Site::Groups(const Target& target) const {
  const auto query = GroupQueryOf(target, options_.now_s());
  if (!query) {
    return query.error();
  }
  CLEW_ASSIGN_OR_RETURN(groups, catalogue_.Groups(*query));
  CLEW_ASSIGN_OR_RETURN(counts, catalogue_.Counts());
  return HtmlResponse(
      GroupsPage(Context(), *query, FieldsIn(target), groups, counts));
}

Result<Response> Site::Group(const Target& target,
                             std::string_view signature) const {
  if (!IsSignature(signature)) {
    return NotFound("A group is named by 64 hexadecimal digits.");
  }
  const auto offset = OffsetOf(target);
  if (!offset) {
    return BadRequest(kBadPage);
  }
  // Links to a group that another has taken in go on working.
  CLEW_ASSIGN_OR_RETURN(present,
                        catalogue_.PresentSignature(std::string(signature)));
  const BundleQuery query{.offset = *offset,
                          .limit = kRowsPerPage,
                          .signature = std::move(present)};
  CLEW_ASSIGN_OR_RETURN(group, catalogue_.Group(query.signature));
  if (!group) {
    return NotFound("There is no such group.");
  }
  CLEW_ASSIGN_OR_RETURN(details, DetailsOf(std::move(*group)));
  CLEW_ASSIGN_OR_RETURN(bundles, catalogue_.Bundles(query));
  return HtmlResponse(GroupPage(Context(), details, query, bundles));
}

Result<GroupDetails> Site::DetailsOf(GroupRow group) const {
  GroupDetails details;
  details.row = std::move(group);
  if (details.row.representative) {
    const BundleId& id = *details.row.representative;
    CLEW_ASSIGN_OR_RETURN(analysis, catalogue_.AnalysisOf(id));
    CLEW_ASSIGN_OR_RETURN(races, catalogue_.RacesOf(id));
    details.analysis = std::move(analysis);
    details.races = std::move(races);
  }
  const std::string& signature = details.row.signature;
  CLEW_ASSIGN_OR_RETURN(versions,
                        catalogue_.VersionsOf(signature, kVersionsShown));
  CLEW_ASSIGN_OR_RETURN(
      days,
      catalogue_.DaysOf(signature, options_.now_s() / kDay_s - kDaysShown + 1));
  details.versions = std::move(versions);
  details.days = std::move(days);
  return details;
}

Result<Response> Site::Bundles(const Target& target) const {
  const auto offset = OffsetOf(target);
  if (!offset) {
    return BadRequest(kBadPage);
  }
  const auto state = StateOf(target);
  auto filter = FilterIn(target, options_.now_s());
  if (!state || !filter) {
    return state ? filter.error() : state.error();
  }
  const BundleQuery query{.offset = *offset,
                          .limit = kRowsPerPage,
                          .state = *state,
                          .filter = *std::move(filter)};
  CLEW_ASSIGN_OR_RETURN(bundles, catalogue_.Bundles(query));
  CLEW_ASSIGN_OR_RETURN(counts, catalogue_.Counts());
  return HtmlResponse(
      BundlesPage(Context(), query, FieldsIn(target), bundles, counts));
}

// kInvalidArgument: no such bundle.
Result<BundleDetails> Site::DetailsOf(std::string_view id) const {
  const auto bundle_id = BundleId::Parse(id);
  if (!bundle_id) {
    return InvalidArgument("A bundle is named by 64 hexadecimal digits.");
  }
  CLEW_ASSIGN_OR_RETURN(row, catalogue_.Bundle(*bundle_id));
  if (!row) {
    return InvalidArgument("There is no such bundle.");
  }
  CLEW_ASSIGN_OR_RETURN(analysis, catalogue_.AnalysisOf(*bundle_id));
  CLEW_ASSIGN_OR_RETURN(races, catalogue_.RacesOf(*bundle_id));
  BundleDetails details{.row = std::move(*row),
                        .analysis = std::move(analysis),
                        .races = std::move(races),
                        .files = std::nullopt,
                        .files_missing_why = {},
                        .damaged = store_.IsDamaged(*bundle_id)};
  auto files = store_.ReadList(*bundle_id);
  if (files) {
    details.files = std::move(*files);
  } else {
    details.files_missing_why = files.error().message;
  }
  return details;
}

Result<Response> Site::OneBundle(std::string_view id) const {
  const auto details = DetailsOf(id);
  if (details) {
    return HtmlResponse(BundlePage(Context(), *details));
  }
  if (details.error().code == ErrorCode::kInvalidArgument) {
    return NotFound(details.error().message);
  }
  return std::unexpected(details.error());
}

Result<Response> Site::BundleJson(std::string_view id) const {
  const auto details = DetailsOf(id);
  if (details) {
    return Response{.content_type = kJson, .body = BundleAsJson(*details)};
  }
  if (details.error().code == ErrorCode::kInvalidArgument) {
    return NotFound(details.error().message);
  }
  return std::unexpected(details.error());
}

Result<Response> Site::GroupsJson(const Target& target) const {
  const auto query = GroupQueryOf(target, options_.now_s());
  if (!query) {
    return query.error();
  }
  CLEW_ASSIGN_OR_RETURN(groups, catalogue_.Groups(*query));
  return Response{.content_type = kJson, .body = GroupsAsJson(groups)};
}

Result<HostUses> Site::Uses() const {
  constexpr uint64_t kBatch = 500;
  HostUses uses;
  while (uses.bundles_read < kHostBundlesMax) {
    CLEW_ASSIGN_OR_RETURN(
        bundles,
        catalogue_.Bundles({.offset = uses.bundles_read, .limit = kBatch}));
    uses.bundles_total = bundles.total;
    for (const BundleRow& bundle : bundles.rows) {
      uses.Add(bundle);
    }
    if (bundles.rows.empty()) {
      break;
    }
  }
  return uses;
}

Result<HostReports> Site::ReportsOf(const HostQuery& query) const {
  HostReports reports{.query = query, .page = {}, .counts = {}};
  if (options_.hosts == nullptr) {
    return reports;
  }
  CLEW_ASSIGN_OR_RETURN(page, options_.hosts->Hosts(query, options_.now_s()));
  CLEW_ASSIGN_OR_RETURN(counts, options_.hosts->Counts(options_.now_s()));
  reports.page = std::move(page);
  reports.counts = counts;
  return reports;
}

Result<Response> Site::Hosts(const Target& target) const {
  const auto query = HostQueryOf(target);
  if (!query) {
    return query.error();
  }
  CLEW_ASSIGN_OR_RETURN(reports, ReportsOf(*query));
  CLEW_ASSIGN_OR_RETURN(uses, Uses());
  return HtmlResponse(HostsPage(Context(), reports, uses));
}

Result<Response> Site::HostsJson(const Target& target) const {
  const auto query = HostQueryOf(target);
  if (!query) {
    return query.error();
  }
  CLEW_ASSIGN_OR_RETURN(reports, ReportsOf(*query));
  return Response{.content_type = kJson, .body = HostsAsJson(reports.page)};
}

Result<Response> Site::Metrics() {
  CLEW_ASSIGN_OR_RETURN(counts, catalogue_.Counts());
  MetricsWriter metrics;
  const auto gauge = [&](const char* name, const char* help, uint64_t value) {
    metrics.Gauge(name, help, static_cast<double>(value));
  };
  gauge("clew_bundles", "Bundles in the catalogue.", counts.bundles);
  gauge("clew_groups", "Groups of failures.", counts.groups);
  gauge("clew_hosts", "Hosts that have sent a bundle.", counts.hosts);
  gauge("clew_bundle_bytes",
        "Bytes of all bundles, shared chunks counted in each.", counts.bytes);
  for (size_t i = 0; i < kBundleStates && i < counts.by_state.size(); ++i) {
    metrics.Gauge(
        "clew_bundles_by_state", "Bundles by how far they have come.",
        static_cast<double>(counts.by_state[i]),
        {{"state", std::string(StateName(static_cast<BundleState>(i)))}});
  }
  if (options_.hosts != nullptr) {
    CLEW_ASSIGN_OR_RETURN(hosts, options_.hosts->Counts(options_.now_s()));
    for (size_t i = 0; i < kHostHealths; ++i) {
      metrics.Gauge(
          "clew_hosts_by_health", "Hosts by what they said of themselves.",
          static_cast<double>(hosts.by_health[i]),
          {{"health", std::string(ToString(static_cast<HostHealth>(i)))}});
    }
  }
  gauge("clew_store_used_bytes", "Bytes of chunks and lists on disk.",
        store_.used_bytes());
  const StoreHealth health = store_.Health();
  gauge("clew_damaged_chunks", "Chunks that the disk lost or changed.",
        health.damaged_chunks);
  gauge("clew_damaged_bundles", "Bundles that need them, or without a list.",
        health.damaged_bundles);
  metrics.Gauge("clew_last_scrub_timestamp_seconds",
                "End of the last walk through the whole store, 0: never.",
                static_cast<double>(health.last_scrub_s));
  gauge("clew_store_read",
        "1: all of the store was read since the start; before that the bytes "
        "and the damage are of what was read so far.",
        store_.IsAllRead() ? 1 : 0);
  if (options_.store_limit_bytes != 0) {
    gauge("clew_store_limit_bytes", "Bytes that the store may take.",
          options_.store_limit_bytes);
  }
  stats_.WriteTo(metrics);
  if (options_.more) {
    const std::lock_guard lock(more_mutex_);
    options_.more(metrics);
  }
  return Response{.content_type = kPrometheus,
                  .body = metrics.Text(),
                  .cache_control = "no-store"};
}

// The catalogue is asked for its latest bundle, the store for its files.
Status Site::CheckHealth() const {
  CLEW_RETURN_IF_ERROR(catalogue_.Health());
  CLEW_ASSIGN_OR_RETURN(latest, catalogue_.Bundles({.limit = 1}));
  for (const BundleRow& bundle : latest.rows) {
    const auto list = store_.ReadList(bundle.id);
    // It may just have been removed; the catalogue follows.
    if (!list && list.error().code != ErrorCode::kInvalidArgument) {
      return std::unexpected(list.error());
    }
  }
  return {};
}

// Damage is not a reason to send clients elsewhere: uploads heal it.
std::string Site::HealthText() const {
  const StoreHealth health = store_.Health();
  const bool whole = health.damaged_chunks == 0 && health.damaged_bundles == 0;
  return fmt::format(
      "{}\ndamaged_chunks {}\ndamaged_bundles {}\nlast_scrub_s {}\n"
      "store_read {}\n",
      whole ? "ok" : "damaged", health.damaged_chunks, health.damaged_bundles,
      health.last_scrub_s, store_.IsAllRead() ? 1 : 0);
}

Response Site::Health() const {
  const Status status = CheckHealth();
  return {.status = status ? 200 : 503,
          .content_type = kText,
          .body = status ? HealthText() : status.error().message + "\n",
          .cache_control = "no-store"};
}

PageContext Site::Context() const {
  return {.now_s = options_.now_s(),
          .client_options = options_.client_options,
          .is_damaged = [this](const BundleId& id) {
            return store_.IsDamaged(id);
          }};
}

}  // namespace clew::collector::web
