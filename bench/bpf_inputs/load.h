#ifndef CLEW_BENCH_BPF_INPUTS_LOAD_H_
#define CLEW_BENCH_BPF_INPUTS_LOAD_H_

#include <cstdint>
#include <nlohmann/json.hpp>

#include "bench/bpf_inputs/threads.h"
#include "common/result.h"

namespace clew::bench {

// The load without a recording, with one, and with two that lose calls, since
// their budget is small or their reader comes late; in turns, `rounds` times
// each: prints the tables and adds rows to `rows`. Fails as
// KernelInputSource::Open does.
[[nodiscard]] Status MeasureLoad(const LoadShape& shape, uint32_t rounds,
                                 nlohmann::json& rows);

}  // namespace clew::bench

#endif  // CLEW_BENCH_BPF_INPUTS_LOAD_H_
