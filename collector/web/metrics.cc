#include "collector/web/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "common/check.h"

namespace clew::collector::web {
namespace {

bool IsName(std::string_view name) {
  const auto is_first = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_first(name[0]) &&
         std::ranges::all_of(name, [&](char c) {
           return is_first(c) || (c >= '0' && c <= '9');
         });
}

// `quote`: for a label's value.
std::string Escape(std::string_view text, bool quote) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quote) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string FormatValue(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "+Inf" : "-Inf";
  }
  constexpr double kExactMax = 9007199254740992.0;  // 2^53
  if (std::trunc(value) == value && std::abs(value) < kExactMax) {
    return fmt::format("{}", static_cast<int64_t>(value));
  }
  return fmt::format("{}", value);
}

void AppendSample(std::string_view name, const MetricsWriter::Labels& labels,
                  double value, std::string& out) {
  out += name;
  char separator = '{';
  for (const auto& [label, text] : labels) {
    CLEW_CHECK(IsName(label), "{:?} is no name of a label", label);
    fmt::format_to(std::back_inserter(out), "{}{}=\"{}\"", separator, label,
                   Escape(text, true));
    separator = ',';
  }
  if (!labels.empty()) {
    out += '}';
  }
  fmt::format_to(std::back_inserter(out), " {}\n", FormatValue(value));
}

}  // namespace

MetricsWriter::Family& MetricsWriter::Of(std::string_view name,
                                         std::string_view type,
                                         std::string_view help) {
  CLEW_CHECK(IsName(name), "{:?} is no name of a metric", name);
  const auto known = families_.find(name);
  if (known == families_.end()) {
    order_.emplace_back(name);
    return families_
        .emplace(name, Family{std::string(type), std::string(help), {}})
        .first->second;
  }
  CLEW_CHECK(known->second.type == type && known->second.help == help,
             "{} is a {} ({:?}) and a {} ({:?})", name, known->second.type,
             known->second.help, type, help);
  return known->second;
}

void MetricsWriter::Counter(std::string_view name, std::string_view help,
                            double value, const Labels& labels) {
  CLEW_CHECK(name.ends_with("_total"), "counter {:?} does not end in _total",
             name);
  AppendSample(name, labels, value, Of(name, "counter", help).samples);
}

void MetricsWriter::Gauge(std::string_view name, std::string_view help,
                          double value, const Labels& labels) {
  AppendSample(name, labels, value, Of(name, "gauge", help).samples);
}

void MetricsWriter::Histogram(std::string_view name, std::string_view help,
                              std::span<const double> bounds,
                              std::span<const uint64_t> counts, double sum,
                              const Labels& labels) {
  CLEW_CHECK(
      counts.size() == bounds.size() + 1 && std::ranges::is_sorted(bounds),
      "{}: {} bounds, {} counts", name, bounds.size(), counts.size());
  std::string& samples = Of(name, "histogram", help).samples;
  const std::string bucket = std::string(name) + "_bucket";
  uint64_t total = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    Labels with_bound = labels;
    with_bound.emplace_back(
        "le", i < bounds.size() ? FormatValue(bounds[i]) : "+Inf");
    AppendSample(bucket, with_bound, static_cast<double>(total), samples);
  }
  AppendSample(std::string(name) + "_sum", labels, sum, samples);
  AppendSample(std::string(name) + "_count", labels, static_cast<double>(total),
               samples);
}

std::string MetricsWriter::Text() const {
  std::string text;
  for (const std::string& name : order_) {
    const Family& family = families_.at(name);
    fmt::format_to(std::back_inserter(text), "# HELP {} {}\n# TYPE {} {}\n{}",
                   name, Escape(family.help, false), name, family.type,
                   family.samples);
  }
  return text;
}

void RequestStats::Count(int status, double seconds) {
  const auto* bound = std::ranges::lower_bound(kBounds_s, seconds);
  const std::lock_guard lock(mutex_);
  ++by_status_[status];
  ++by_time_[static_cast<size_t>(bound - kBounds_s.begin())];
  sum_s_ += seconds;
}

void RequestStats::WriteTo(MetricsWriter& metrics) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [status, count] : by_status_) {
    metrics.Counter("clew_web_requests_total", "Requests answered, by status.",
                    static_cast<double>(count),
                    {{"status", std::to_string(status)}});
  }
  metrics.Histogram("clew_web_request_seconds",
                    "Time from a whole request head to the answer.", kBounds_s,
                    by_time_, sum_s_);
}

}  // namespace clew::collector::web
