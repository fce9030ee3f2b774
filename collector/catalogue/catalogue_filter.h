#ifndef CLEW_COLLECTOR_CATALOGUE_CATALOGUE_FILTER_H_
#define CLEW_COLLECTOR_CATALOGUE_CATALOGUE_FILTER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "collector/catalogue/catalogue.h"
#include "collector/catalogue/sqlite.h"

namespace clew::collector {

// The WHERE of a statement, with the values of its parameters.
class Where {
 public:
  using Value = std::variant<int64_t, std::string>;

  // `condition` has one "?" for each of `values`, in order.
  void Add(std::string_view condition, std::vector<Value> values);
  // Of the columns of `bundles`; what is empty in `filter` adds nothing.
  void AddFilter(const BundleFilter& filter);

  // " WHERE ... AND ..."; empty: no condition.
  const std::string& sql() const { return sql_; }
  // REQUIRES: these are the first parameters of `query`.
  void Bind(Query& query) const;
  const std::vector<Value>& values() const { return values_; }

 private:
  std::string sql_;
  std::vector<Value> values_;
};

// Of `groups`, joined with `marks`.
Where WhereOf(const GroupQuery& query);
// Of `bundles`.
Where WhereOf(const BundleQuery& query);

// SQL for "the version `column` is the one that ?N names": the same text, or
// the first digits of a build-id. Both parameters are that name.
inline constexpr std::string_view kIsVersion =
    "(version = ? OR (version NOT GLOB '*[^0-9a-f]*' AND "
    "substr(version, 1, length(?)) = ?))";

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CATALOGUE_CATALOGUE_FILTER_H_
