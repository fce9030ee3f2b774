#include "collector/web/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "common/text/parse_number.h"
#include "common/units.h"

namespace clew::collector::web {
namespace {

constexpr int64_t kSecondsMax = int64_t{1} << 40;

struct FieldWords {
  const char* name;
  const char* label;
  std::string FilterFields::* value;
  const char* type;  // of an <input>; nullptr: a choice of kPeriods
  const char* placeholder;
};
constexpr std::array kFields = {
    FieldWords{"program", "Program", &FilterFields::program, "text", "bank"},
    FieldWords{"version", "Version", &FilterFields::version, "text", "1.4.2"},
    FieldWords{"failure", "Signal", &FilterFields::failure, "text", "SIGSEGV"},
    FieldWords{"unit", "Unit", &FilterFields::unit, "text", "bank.service"},
    FieldWords{"host", "Host", &FilterFields::host, "text", "web-01.example"},
    FieldWords{"last", "Seen in the last", &FilterFields::last, nullptr, ""},
    FieldWords{"since", "Seen from", &FilterFields::since, "date", ""},
    FieldWords{"until", "Seen until", &FilterFields::until, "date", ""},
};

struct Period {
  const char* name;
  const char* label;
  int64_t seconds;
};
constexpr std::array kPeriods = {Period{"24h", "24 hours", kDay_s},
                                 Period{"7d", "7 days", 7 * kDay_s},
                                 Period{"30d", "30 days", 30 * kDay_s}};

const Period* PeriodNamed(std::string_view name) {
  const auto* found = std::ranges::find_if(
      kPeriods, [&](const Period& period) { return period.name == name; });
  return found == kPeriods.end() ? nullptr : found;
}

// The begin of a day that is written "2026-11-20".
std::optional<int64_t> DayOf(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') {
    return std::nullopt;
  }
  const auto year = ParseNumber<int>(text.substr(0, 4));
  const auto month = ParseNumber<unsigned>(text.substr(5, 2));
  const auto day = ParseNumber<unsigned>(text.substr(8, 2));
  if (!year || !month || !day || *year < 1970) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(*month),
                                         std::chrono::day(*day)};
  return date.ok() ? std::optional<int64_t>(
                         std::chrono::sys_days(date).time_since_epoch() /
                         std::chrono::seconds(1))
                   : std::nullopt;
}

// 0 of nothing; of a date its begin or the begin of the next day; nullopt:
// neither a date nor seconds.
std::optional<int64_t> TimeOf(std::string_view text, int64_t after_day_s) {
  if (text.empty()) {
    return 0;
  }
  if (const auto day = DayOf(text)) {
    return *day + after_day_s;
  }
  const auto seconds = ParseNumber<int64_t>(text);
  return seconds && *seconds >= 0 && *seconds <= kSecondsMax ? seconds
                                                             : std::nullopt;
}

bool AnyInUse(const FilterFields& fields) { return fields != FilterFields(); }

std::string LinkTo(const std::string& path, const AddressFields& others,
                   const FilterFields& fields) {
  return path + "?" + AddressOf(others, fields);
}

void WritePeriods(HtmlWriter& html, const FieldWords& field,
                  const std::string& chosen) {
  html.In("select", {{"name", field.name}}, [&] {
    html.Element("option", {{"value", ""}}, "any time");
    for (const Period& period : kPeriods) {
      if (period.name == chosen) {
        html.Element("option", {{"value", period.name}, {"selected", ""}},
                     period.label);
      } else {
        html.Element("option", {{"value", period.name}}, period.label);
      }
    }
  });
}

// A date field takes no seconds: those are a plain field.
const char* TypeOf(const FieldWords& field, const std::string& value) {
  const bool is_date = std::string_view(field.type) == "date";
  return is_date && !value.empty() && !DayOf(value) ? "text" : field.type;
}

void WriteField(HtmlWriter& html, const FieldWords& field,
                const std::string& value) {
  html.In("label", {}, [&] {
    html.Element("span", field.label);
    if (field.type == nullptr) {
      WritePeriods(html, field, value);
      return;
    }
    html.Void("input", {{"type", TypeOf(field, value)},
                        {"name", field.name},
                        {"value", value},
                        {"maxlength", "200"},
                        {"placeholder", field.placeholder}});
  });
}

void WriteForm(HtmlWriter& html, const std::string& path,
               const AddressFields& others, const FilterFields& fields) {
  html.In("form", {{"class", "filters"}, {"action", path}}, [&] {
    WriteHiddenFields(html, others);
    for (const FieldWords& field : kFields) {
      WriteField(html, field, fields.*field.value);
    }
    html.Element("button", {{"type", "submit"}}, "Filter");
  });
  html.Element("p", {{"class", "muted"}},
               "A bundle matches that has all of these; seen is when the "
               "collector received it, in UTC.");
}

}  // namespace

FilterFields FieldsOf(
    const std::function<std::string_view(const char*)>& value) {
  FilterFields fields;
  for (const FieldWords& field : kFields) {
    fields.*field.value = value(field.name);
  }
  return fields;
}

std::expected<BundleFilter, std::string> FilterOf(const FilterFields& fields,
                                                  int64_t now_s) {
  const auto since_s = TimeOf(fields.since, 0);
  const auto until_s = TimeOf(fields.until, kDay_s);
  if (!since_s || !until_s) {
    return std::unexpected(
        fmt::format("{}: wanted a date as 2026-11-20, or seconds since 1970",
                    since_s ? "until" : "since"));
  }
  const Period* period = PeriodNamed(fields.last);
  if (period == nullptr && !fields.last.empty()) {
    return std::unexpected(std::string("last: wanted 24h, 7d or 30d"));
  }
  return BundleFilter{
      .host = fields.host,
      .program = fields.program,
      .version = fields.version,
      .unit = fields.unit,
      .failure = fields.failure,
      .since_s = period == nullptr
                     ? *since_s
                     : std::max(*since_s, now_s - period->seconds),
      .until_s = *until_s};
}

void AddFields(const FilterFields& fields, AddressFields& to) {
  for (const FieldWords& field : kFields) {
    to.emplace_back(field.name, fields.*field.value);
  }
}

std::string AddressOf(const AddressFields& others, const FilterFields& fields) {
  AddressFields all = others;
  AddFields(fields, all);
  std::string text;
  for (const auto& [name, value] : all) {
    text += FieldOf(name, value);
  }
  return text;
}

void WriteFilterForm(HtmlWriter& html, const std::string& path,
                     const AddressFields& others, const FilterFields& fields) {
  const auto content = [&] {
    html.Element("summary",
                 "Filter by program, version, signal, unit, host, time");
    WriteForm(html, path, others, fields);
  };
  if (AnyInUse(fields)) {
    html.In("details", {{"class", "filterbox"}, {"open", ""}}, content);
  } else {
    html.In("details", {{"class", "filterbox"}}, content);
  }
}

void WriteFiltersInUse(HtmlWriter& html, const std::string& path,
                       const AddressFields& others,
                       const FilterFields& fields) {
  if (!AnyInUse(fields)) {
    return;
  }
  html.In("ul", {{"class", "in-use"}, {"aria-label", "Filters in use"}}, [&] {
    for (const FieldWords& field : kFields) {
      const std::string& value = fields.*field.value;
      if (value.empty()) {
        continue;
      }
      FilterFields without = fields;
      (without.*field.value).clear();
      html.In("li", {}, [&] {
        html.Text(fmt::format("{}: ", field.label));
        html.Foreign(value);
        html.Text(" ");
        html.Element("a",
                     {{"href", LinkTo(path, others, without)},
                      {"aria-label", fmt::format("without {}", field.label)}},
                     "×");
      });
    }
    html.In("li", {}, [&] {
      html.Element("a", {{"href", LinkTo(path, others, {})}}, "Clear filters");
    });
  });
}

}  // namespace clew::collector::web
