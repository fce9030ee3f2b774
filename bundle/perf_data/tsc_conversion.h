#ifndef CLEW_BUNDLE_PERF_DATA_TSC_CONVERSION_H_
#define CLEW_BUNDLE_PERF_DATA_TSC_CONVERSION_H_

#include <cstdint>

#include "common/units.h"

namespace clew::bundle {

// How perf's clock follows from the TSC:
//
//   ns = zero + ((tsc * mult) >> shift)
//
// Source: linux/perf_event.h, perf_event_mmap_page::time_zero.
//
// The default makes a TSC tick one nanosecond, so both directions are exact.
struct TscConversion {
  uint32_t shift = 0;  // below 64
  uint32_t mult = 1;   // > 0
  uint64_t zero = 0;
  bool operator==(const TscConversion&) const = default;
};

PerfNanos ToPerfNanos(TscTicks tsc, const TscConversion& conversion);

// Returns all TSC values of which ToPerfNanos is `time`; the ones around it if
// there is none; 0 for a time before that of 0. REQUIRES: conversion.mult > 0,
// conversion.shift < 64.
TscInterval ToTsc(PerfNanos time, const TscConversion& conversion);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_TSC_CONVERSION_H_
