#ifndef CLEW_COLLECTOR_WEB_FILTERS_H_
#define CLEW_COLLECTOR_WEB_FILTERS_H_

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <string_view>

#include "collector/catalogue/catalogue.h"
#include "collector/web/html.h"
#include "collector/web/page_frame.h"

namespace clew::collector::web {

// What groups and bundles are filtered by, as an address has it. Empty: not.
struct FilterFields {
  std::string program{};
  std::string version{};
  std::string failure{};
  std::string unit{};
  std::string host{};
  std::string last{};   // "24h", "7d", "30d"
  std::string since{};  // "2026-11-20", or seconds since 1970
  std::string until{};  // the same; a date with its whole day
  bool operator==(const FilterFields&) const = default;
};

// `value` gives the field of a name, empty where the address has none.
FilterFields FieldsOf(
    const std::function<std::string_view(const char*)>& value);
// Or what is wrong with the fields, for people. `last` ends at `now_s`.
std::expected<BundleFilter, std::string> FilterOf(const FilterFields& fields,
                                                  int64_t now_s);

// Puts them behind `to`.
void AddFields(const FilterFields& fields, AddressFields& to);
// "program=bank&last=24h&", for an address; what is empty is left out.
std::string AddressOf(const AddressFields& others, const FilterFields& fields);

// A form for all of them that keeps `others`; open where one is in use.
void WriteFilterForm(HtmlWriter& html, const std::string& path,
                     const AddressFields& others, const FilterFields& fields);
// What is in use, each with a link that takes it away. Nothing where none is.
void WriteFiltersInUse(HtmlWriter& html, const std::string& path,
                       const AddressFields& others, const FilterFields& fields);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_FILTERS_H_
