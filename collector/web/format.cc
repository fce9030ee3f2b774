#include "collector/web/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <ctime>

#include "common/units.h"

namespace clew::collector::web {
namespace {

constexpr int64_t kYear10000_s = 253402300800;  // 10000-01-01T00:00:00Z
constexpr int64_t kYear0_s = -62167219200;

std::string WithUnit(int64_t seconds) {
  if (seconds < kHour_s) {
    return fmt::format("{} min", seconds / kMinute_s);
  }
  if (seconds < 2 * kDay_s) {
    return fmt::format("{} h", seconds / kHour_s);
  }
  return fmt::format("{} days", seconds / kDay_s);
}

std::string FormatWith(int64_t time_s, const char* format) {
  if (time_s < kYear0_s || time_s >= kYear10000_s) {
    return fmt::format("{} s since 1970", time_s);
  }
  const std::time_t time = time_s;
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  const size_t size = std::strftime(text.data(), text.size(), format, &parts);
  return {text.data(), size};
}

}  // namespace

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1024) {
    return fmt::format("{} B", bytes);
  }
  static constexpr std::array kUnits = {"KiB", "MiB", "GiB",
                                        "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be printed as 1024.0.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string FormatCount(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t left = text.size(); left > 3; left -= 3) {
    text.insert(left - 3, 1, ',');
  }
  return text;
}

std::string Plural(uint64_t count, std::string_view one,
                   std::string_view many) {
  return fmt::format("{} {}", FormatCount(count), count == 1 ? one : many);
}

std::string FormatTime(int64_t time_s) {
  return FormatWith(time_s, "%Y-%m-%d %H:%M:%S");
}

std::string FormatTimeIso(int64_t time_s) {
  return FormatWith(time_s, "%Y-%m-%dT%H:%M:%SZ");
}

std::string FormatAge(int64_t time_s, int64_t now_s) {
  int64_t age_s = 0;
  if (__builtin_sub_overflow(now_s, time_s, &age_s)) {
    return "";
  }
  if (age_s <= -kMinute_s) {
    return age_s == INT64_MIN ? "" : "in " + WithUnit(-age_s);
  }
  return age_s < kMinute_s ? "just now" : WithUnit(age_s) + " ago";
}

std::string FormatSeconds(double seconds) {
  if (seconds < 10) {
    return fmt::format("{:.2f} s", seconds);
  }
  if (seconds < 120) {
    return fmt::format("{:.0f} s", seconds);
  }
  return fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace clew::collector::web
