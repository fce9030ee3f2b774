#ifndef CLEW_BENCH_ENCODINGS_GENERATED_H_
#define CLEW_BENCH_ENCODINGS_GENERATED_H_

#include "bench/encodings_table.h"

namespace clew::bench {

// Small programs run under a random scheduler and written down as constraint
// traces (tests/support/toy_programs.h): 4 threads on 2 virtual cores, times
// known to a window of 16 accesses. racey has no data-dependent branch; as in
// the published figures addresses are given and values are free ("racey"), or
// the 6 bits of the hash that choose the address are evidence at every read
// ("racey e=6"). Order formulas leave values out in the former and have them
// in the latter.
void MeasureGenerated(const Settings& settings, Table& table);

// Harder ones for the portfolio, and only for it: coarse clocks or none,
// evidence only at the end.
void MeasureHarder(const Settings& settings, Table& table);

}  // namespace clew::bench

#endif  // CLEW_BENCH_ENCODINGS_GENERATED_H_
