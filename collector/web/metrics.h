#ifndef CLEW_COLLECTOR_WEB_METRICS_H_
#define CLEW_COLLECTOR_WEB_METRICS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clew::collector::web {

// Figures in the Prometheus text format, version 0.0.4 ("Text-based format" in
// Prometheus' documentation). Samples of one name may be added in any order;
// they come out together, under one HELP and TYPE. Not thread-safe.
class MetricsWriter {
 public:
  using Label = std::pair<std::string, std::string>;  // name, value
  using Labels = std::vector<Label>;

  // What only goes up while the collector runs; `name` ends in "_total".
  // REQUIRES, of all three: a name of [a-zA-Z_][a-zA-Z0-9_]*, of one type and
  // one help text; labels' names likewise. Values of labels are any bytes.
  void Counter(std::string_view name, std::string_view help, double value,
               const Labels& labels = {});
  // What goes up and down.
  void Gauge(std::string_view name, std::string_view help, double value,
             const Labels& labels = {});
  // Observations by size: `counts[i]` are those <= bounds[i] and above
  // bounds[i - 1]; the last count is of those above all bounds.
  // REQUIRES: bounds ascend; counts.size() == bounds.size() + 1.
  void Histogram(std::string_view name, std::string_view help,
                 std::span<const double> bounds,
                 std::span<const uint64_t> counts, double sum,
                 const Labels& labels = {});

  // The whole text.
  std::string Text() const;

 private:
  struct Family {
    std::string type;
    std::string help;
    std::string samples;
  };
  Family& Of(std::string_view name, std::string_view type,
             std::string_view help);

  std::vector<std::string> order_;
  std::map<std::string, Family, std::less<>> families_;
};

// Requests that the web server has answered, by status and time taken.
// Thread-safe.
class RequestStats {
 public:
  void Count(int status, double seconds);
  void WriteTo(MetricsWriter& metrics) const;

 private:
  static constexpr std::array kBounds_s = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0};

  mutable std::mutex mutex_;
  std::map<int, uint64_t> by_status_;
  std::array<uint64_t, kBounds_s.size() + 1> by_time_{};
  double sum_s_ = 0;
};

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_METRICS_H_
