#include "collector/catalogue/catalogue_filter.h"

#include <type_traits>
#include <utility>

#include "collector/catalogue/text.h"

namespace clew::collector {
namespace {

constexpr std::string_view kUnitSuffix = ".service";

}  // namespace

bool BundleFilter::empty() const {
  return host.empty() && program.empty() && version.empty() && unit.empty() &&
         failure.empty() && since_s == 0 && until_s == 0;
}

void Where::Add(std::string_view condition, std::vector<Value> values) {
  sql_ += sql_.empty() ? " WHERE " : " AND ";
  sql_ += condition;
  std::ranges::move(values, std::back_inserter(values_));
}

void Where::AddFilter(const BundleFilter& filter) {
  if (!filter.host.empty()) {
    Add("host = ?", {CleanName(filter.host)});
  }
  if (!filter.program.empty()) {
    Add("program = ?", {CleanName(filter.program)});
  }
  if (!filter.version.empty()) {
    const std::string version = CleanName(filter.version);
    Add(kIsVersion, {version, version, version});
  }
  if (!filter.unit.empty()) {
    const std::string unit = CleanName(filter.unit);
    Add("unit IN (?, ?)", {unit, unit + std::string(kUnitSuffix)});
  }
  if (!filter.failure.empty()) {
    // "signal 6 (SIGABRT)" is that, "signal 6" and "SIGABRT".
    const std::string failure = CleanName(filter.failure);
    const std::string pattern = LikePattern(failure);
    const std::string inner = pattern.substr(1, pattern.size() - 2);
    Add("(failure = ? OR failure LIKE ? ESCAPE '\\' "
        "OR failure LIKE ? ESCAPE '\\')",
        {failure, inner + " (%)", "% (" + inner + ")"});
  }
  if (filter.since_s > 0) {
    Add("received_at_s >= ?", {filter.since_s});
  }
  if (filter.until_s > 0) {
    Add("received_at_s < ?", {filter.until_s});
  }
}

void Where::Bind(Query& query) const {
  for (const Value& value : values_) {
    std::visit(
        [&](const auto& v) {
          if constexpr (std::is_same_v<std::decay_t<decltype(v)>, int64_t>) {
            query.Int(v);
          } else {
            query.Text(v);
          }
        },
        value);
  }
}

Where WhereOf(const BundleQuery& query) {
  Where where;
  if (!query.signature.empty()) {
    where.Add("signature = ?", {query.signature});
  }
  if (query.state) {
    where.Add("state = ?", {static_cast<int64_t>(*query.state)});
  }
  where.AddFilter(query.filter);
  return where;
}

// The "+" keeps SQLite from looking up each signature that a bundle has, and
// sorting: groups are walked in their order, and the bundles' signatures are a
// set.
Where WhereOf(const GroupQuery& query) {
  Where where;
  if (!query.text.empty()) {
    const std::string pattern = LikePattern(query.text);
    where.Add(
        "(title LIKE ? ESCAPE '\\' OR +groups.signature IN (SELECT signature "
        "FROM places WHERE host LIKE ? ESCAPE '\\' OR "
        "unit LIKE ? ESCAPE '\\'))",
        {pattern, pattern, pattern});
  }
  if (query.resolved) {
    where.Add("ifnull(resolved, 0) = ?", {int64_t{*query.resolved}});
  }
  if (query.reopened) {
    where.Add("resolved = 0 AND reopened_in <> ''", {});
  }
  if (query.state) {
    where.Add("state = ?", {static_cast<int64_t>(*query.state)});
  }
  if (!query.filter.empty()) {
    Where bundles;
    bundles.AddFilter(query.filter);
    where.Add(fmt::format("+groups.signature IN (SELECT signature FROM bundles"
                          "{})",
                          bundles.sql()),
              bundles.values());
  }
  return where;
}

}  // namespace clew::collector
