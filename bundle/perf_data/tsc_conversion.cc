#include "bundle/perf_data/tsc_conversion.h"

#include <algorithm>
#include <limits>

#include "common/check.h"
#include "common/wide.h"

namespace clew::bundle {
namespace {

uint64_t Saturated(Wide value) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  return static_cast<uint64_t>(std::min(value, Wide{kMax}));
}

}  // namespace

PerfNanos ToPerfNanos(TscTicks tsc, const TscConversion& conversion) {
  // The kernel's sum wraps: time_zero may stand for a negative number.
  return PerfNanos(conversion.zero + static_cast<uint64_t>((Wide{tsc.as_int()} *
                                                            conversion.mult) >>
                                                           conversion.shift));
}

TscInterval ToTsc(PerfNanos time, const TscConversion& conversion) {
  CLEW_CHECK(conversion.mult > 0 && conversion.shift < 64,
             "clock conversion with mult {} and shift {}", conversion.mult,
             conversion.shift);
  const uint64_t since = time.as_int() - conversion.zero;
  if (since > std::numeric_limits<int64_t>::max()) {
    return {TscTicks(0), TscTicks(0)};
  }
  const Wide nanos = since;
  const Wide mult = conversion.mult;
  // tsc * mult is in [nanos << shift, (nanos + 1) << shift).
  const Wide first = ((nanos << conversion.shift) + mult - 1) / mult;
  const Wide end = (((nanos + 1) << conversion.shift) + mult - 1) / mult;
  if (first < end) {
    return {TscTicks(Saturated(first)), TscTicks(Saturated(end - 1))};
  }
  return {TscTicks(Saturated(first == 0 ? 0 : first - 1)),
          TscTicks(Saturated(first))};
}

}  // namespace clew::bundle
