#ifndef CLEW_COMMON_UNITS_H_
#define CLEW_COMMON_UNITS_H_

#include <fmt/format.h>

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace clew {

// An integer with a meaning. Two of different Tag do not mix; as_int() is the
// only way out.
template <class Tag, std::integral Int>
class StrongInt {
 public:
  using Underlying = Int;
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Int value) : value_(value) {}
  constexpr Int as_int() const { return value_; }
  auto operator<=>(const StrongInt&) const = default;

 private:
  Int value_ = 0;
};

// An address in the traced process.
using TraceeAddr = StrongInt<struct TraceeAddrTag, uint64_t>;
// Ticks of the time stamp counter that PT's TSC packets carry.
using TscTicks = StrongInt<struct TscTicksTag, uint64_t>;
// Nanoseconds of perf's own clock (perf_event.h, perf_event_mmap_page).
using PerfNanos = StrongInt<struct PerfNanosTag, uint64_t>;
// A thread of the traced process as the recording host numbered it.
using Tid = StrongInt<struct TidTag, int32_t>;
// A logical CPU, hardware or virtual: one PT stream.
using CoreId = StrongInt<struct CoreIdTag, uint32_t>;

inline constexpr uint64_t kNsPerSecond = 1'000'000'000;
inline constexpr int64_t kMinute_s = 60;
inline constexpr int64_t kHour_s = 60 * kMinute_s;
inline constexpr int64_t kDay_s = 24 * kHour_s;

// A closed interval of ticks.
struct TscInterval {
  TscTicks lo;
  TscTicks hi;
  bool operator==(const TscInterval&) const = default;
};

}  // namespace clew

template <class Tag, class Int>
struct std::hash<clew::StrongInt<Tag, Int>> {
  size_t operator()(clew::StrongInt<Tag, Int> value) const {
    return std::hash<Int>()(value.as_int());
  }
};

template <class Tag, class Int>
struct fmt::formatter<clew::StrongInt<Tag, Int>> : fmt::formatter<Int> {
  template <class Context>
  auto format(clew::StrongInt<Tag, Int> value, Context& context) const {
    return fmt::formatter<Int>::format(value.as_int(), context);
  }
};

#endif  // CLEW_COMMON_UNITS_H_
